"""Rules, one file per family; a rule is declared beside its check."""
