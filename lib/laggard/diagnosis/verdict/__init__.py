"""The answer to one question: would adding consumers help, and how many are needed."""
