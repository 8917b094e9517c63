"""Invariants of the tables, checked on the tables without a JVM; nothing is written.

They answer the question: are the rows right?
"""
