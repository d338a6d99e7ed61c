"""Settings proposed from files: what a sample shows, each setting with its reason."""
