"""A configuration bucket and the project folders that are pushed to it."""
