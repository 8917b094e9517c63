"""Records that retention deleted before a group read them."""
