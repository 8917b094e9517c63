"""Logical rebalances: cause, members, moved partitions, pauses and cost."""
