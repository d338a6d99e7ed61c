"""Captures of databases: a first load and then each change, into the landing zone."""
