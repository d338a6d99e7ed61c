"""Captures of PostgreSQL."""
