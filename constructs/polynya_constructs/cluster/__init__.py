"""A cluster of nodes: its group, its bounds, how it scales and what is watched."""
