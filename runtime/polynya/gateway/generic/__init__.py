"""Databases of which Debezium itself reads both the rows that there are and the changes."""
