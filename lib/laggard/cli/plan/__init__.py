"""`laggard plan`: what another number of members, assignor, rate or number of partitions would bring."""
