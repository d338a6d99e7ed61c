"""Verbs about the machines of a cluster, carried out by its network agent."""
