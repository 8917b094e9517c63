"""Groups and their members as their records or coordinators describe them, from batch to batch."""
