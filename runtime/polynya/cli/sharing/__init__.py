"""The verbs for clusters of nodes that share work."""
