"""One group in plain words: the rows behind it (`rows`), its sections, the page, and the verb."""
