"""A table that reads its stream itself: the next batch, and the position that goes with it."""
