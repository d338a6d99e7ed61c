"""Adapters of the ports for AWS."""
