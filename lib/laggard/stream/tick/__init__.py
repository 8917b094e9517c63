"""One tick: rows of a batch decoded, advanced per group, and set aside on errors."""
