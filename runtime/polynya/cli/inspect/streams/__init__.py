"""Streams in what `polynya status` shows."""
