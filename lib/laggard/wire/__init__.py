"""Bytes of `__consumer_offsets` to records: readers, tables of fields, columnar commits.

The readers are pure; commits have a columnar path.
"""
