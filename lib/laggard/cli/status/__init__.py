"""`laggard status`: groups as published and as evaluated, for other verbs too."""
