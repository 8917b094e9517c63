"""The Delta tables: what they hold, how they are made, written, kept and read."""
