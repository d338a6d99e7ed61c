"""The node agent: it keeps the tasks of a configuration running."""
