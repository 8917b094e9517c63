"""Sentences, numbers and times in words, the same on every page."""
