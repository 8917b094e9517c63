"""`laggard plan`: the effect of other numbers of members, assignors, rates or partitions."""
