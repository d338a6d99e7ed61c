"""Read the tables: queries, verification, history, views. Writes no data."""
