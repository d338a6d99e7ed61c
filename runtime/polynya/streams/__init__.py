"""Streams as sources: landing their records, or reading them directly."""
