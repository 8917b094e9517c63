"""The web page under /ui: a document, a style sheet and a few scripts that read the JSON API."""
