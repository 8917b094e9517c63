"""One group in plain words: the rows it stands on (`rows`), its sections, the page, and the verb."""
