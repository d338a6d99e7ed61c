"""A session whose tasks run in the executors of a standalone Spark cluster."""
