"""What is told of a PostgreSQL server: whether it can be captured, and how its slot is."""
