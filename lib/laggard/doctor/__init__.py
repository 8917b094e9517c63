"""Whether laggard can run here: checks as small functions that return what they found."""
