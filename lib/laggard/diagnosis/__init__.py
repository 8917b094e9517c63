"""Pure functions from recorded history to shape, trend, cause, and the use of consumers.

The last is the answer to the question: would more consumers help?
"""
