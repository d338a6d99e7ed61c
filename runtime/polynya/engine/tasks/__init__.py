"""The kinds of task: how each finds, reads and copies landed data."""
