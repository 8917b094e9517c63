"""Questions that several rules ask, one function each: stalls, floor, trend, shape, slow members, deploys."""
