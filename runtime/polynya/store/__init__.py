"""Ports to the outside: object store and clock, with their local adapters."""
