"""The configuration that a node works by: which files are right, and which tasks are its own."""
