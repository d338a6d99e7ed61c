"""Captures of MariaDB, and of MySQL by the same code."""
