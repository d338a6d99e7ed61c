"""Ports to the outside: object store and clock, with their adapters for this machine and AWS."""
