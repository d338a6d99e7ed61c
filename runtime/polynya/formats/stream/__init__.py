"""Landed batches of streams: what a message means is decided when it is copied."""
