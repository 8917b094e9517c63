"""The life of the job: start, query, batches, checkpoint, JVM, heartbeat, stop."""
