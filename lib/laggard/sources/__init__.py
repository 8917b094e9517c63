"""The only place that talks to brokers: the offsets topic and the log ends."""
