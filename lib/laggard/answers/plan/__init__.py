"""The effect on a group of other numbers of members, assignors, rates or partitions."""
