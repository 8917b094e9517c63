"""Numbers, times, names, tables and colours as the terminal shows them."""
