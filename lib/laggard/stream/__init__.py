"""The streaming query: decode, advance, publish."""
