"""The JSON API: answers from the functions of the verbs, their description, and the client that `--url` uses."""
