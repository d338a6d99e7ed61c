"""A warehouse on this machine without Spark: its catalog, what lies in it, moving it."""
