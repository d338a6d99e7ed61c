"""Data files and delete files written again: fewer of them, the same rows."""
