"""Requests of operators to a cluster, and its status: objects in the coordination place."""
