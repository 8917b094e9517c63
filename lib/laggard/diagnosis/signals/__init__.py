"""Questions of several rules, one function each: stalls, floor, trend, shape, slow members.

The last question is about deploys.
"""
