"""Kafka consumer lag and rebalance history in Delta tables, and the answers drawn from it."""

__version__ = "0.1.0"
