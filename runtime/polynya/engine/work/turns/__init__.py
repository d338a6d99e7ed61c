"""Whose turn it is: units of work, the queue, its threads, and when to copy."""
