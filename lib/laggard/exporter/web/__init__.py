"""The web-config file: TLS, users and rate limit of the exporter's server."""
