"""Settings of a task, proposed from a sample of its records."""
