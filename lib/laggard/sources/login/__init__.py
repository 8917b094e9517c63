"""Logging in: TLS, SASL and OAuth for kafka-python and for Spark's Kafka client."""
