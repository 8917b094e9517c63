"""Checks whether laggard can run here: small functions that return their results."""
