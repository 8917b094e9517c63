"""Answers from the tables: documents of groups and findings, and the sentences about them."""
