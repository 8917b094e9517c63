"""Questions to a running exporter, for the verbs with `--url`."""
