"""The bank in PostgreSQL."""
