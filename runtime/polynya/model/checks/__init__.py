"""Settings of a well-formed task that are missing or contradict each other."""
