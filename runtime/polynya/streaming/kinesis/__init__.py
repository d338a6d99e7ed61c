"""Kinesis as a source of streams: shards, their order after splits, and how they are read."""
