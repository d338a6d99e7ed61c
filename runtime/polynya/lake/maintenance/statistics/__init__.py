"""Numbers of distinct values for planners, in Puffin files."""
