"""What is known of a table's shape, from its metadata, and what was done about it before."""
