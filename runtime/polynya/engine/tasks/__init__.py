"""The kinds of storage task: how each finds, reads and copies what has landed."""
