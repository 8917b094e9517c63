"""The JSON API: answers from the functions of the verbs, their description, the `--url` client."""
