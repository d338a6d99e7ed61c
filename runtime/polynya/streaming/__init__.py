"""Streams: what is read from a source, and the landed batches that hold it with the position."""
