"""Rows that are deleted in data files: as position deletes (format v2) or deletion vectors (v3)."""
