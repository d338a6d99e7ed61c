"""Rows leave a table by their age: `expire_rows`."""
