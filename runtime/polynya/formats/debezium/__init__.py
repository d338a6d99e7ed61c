"""Debezium change events as JSON lines: envelopes, positions, types, one read for all tables."""
