"""Mirrors: the tables of a task shown in another warehouse, without a copy of their data."""
