"""A file for each verb, a folder for a verb of several files: its options and what it prints."""
