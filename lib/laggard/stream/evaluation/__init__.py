"""The second query: closed windows read, evaluated and written, live or again."""
