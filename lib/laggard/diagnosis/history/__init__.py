"""Recorded rows of a group as arrays, one frame per window.

Nothing in a frame is newer than its window.
"""
