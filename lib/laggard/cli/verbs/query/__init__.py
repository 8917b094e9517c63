"""`laggard query`: SQL, named questions, ranges and notes on the answer."""
