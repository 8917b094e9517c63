"""From observations to rows: opening and closing of findings, the cause, a window's rows."""
