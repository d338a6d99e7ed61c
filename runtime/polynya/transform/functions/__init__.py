"""Functions of users' expressions: Spark's that are allowed, and Polynya's own, as one table."""
