"""One node: its image and rights, how it boots and what runs on it."""
