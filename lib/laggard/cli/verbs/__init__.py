"""Verbs of the command line: the options of each, and its output."""
