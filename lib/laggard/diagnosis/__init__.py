"""From recorded history to an answer: shape, trend, cause, and whether adding consumers would help. Pure functions."""
