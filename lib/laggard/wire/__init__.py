"""Bytes of `__consumer_offsets` to records: pure readers, tables of fields, and a columnar path for commits."""
