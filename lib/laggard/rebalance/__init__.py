"""Generations and members of groups as pure functions."""
