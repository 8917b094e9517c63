"""From observations to rows: when a finding opens and closes, which one is the cause, and the rows of a window."""
