"""The fold as SQL text: events of some records in, their versions out. Starts no Spark."""
