"""The network agent's own update: a pinned version is tried beside the one that serves."""
