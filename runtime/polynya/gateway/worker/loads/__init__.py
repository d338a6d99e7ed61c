"""Rows of tables on their way into the log: chunks by key, and whole tables that have none."""
