"""`streams` of a cluster in a stage file: what its nodes may read, and where they land it."""
