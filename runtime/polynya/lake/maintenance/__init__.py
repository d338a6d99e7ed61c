"""Maintenance of tables: each action changes files and metadata, and never a query's result."""
