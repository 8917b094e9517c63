"""The body of a scrape: families, samples, formats, and the cap on its series."""
