"""From one batch of the tables to one scrape, without a JVM and without Spark."""
