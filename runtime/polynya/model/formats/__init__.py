"""What the configuration knows of each source format: facts, and checks of its settings."""
