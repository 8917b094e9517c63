"""Lag of partitions as pure functions."""
