"""REST APIs as a source of streams."""
