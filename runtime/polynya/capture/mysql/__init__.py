"""Captures of MariaDB and MySQL."""
