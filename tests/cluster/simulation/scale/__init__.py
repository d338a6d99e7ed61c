"""A thousand nodes and a hundred thousand units."""
