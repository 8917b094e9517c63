"""Requests that kafka-python does not have, as schemas for its own codec."""
