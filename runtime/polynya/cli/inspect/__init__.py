"""Commands that read the tables."""
