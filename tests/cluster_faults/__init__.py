"""Agents in processes of their own under faults of their machines and of the store."""
