"""Compaction, checkpoints and retention of the tables, and when they are due."""
