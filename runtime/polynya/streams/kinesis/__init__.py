"""Kinesis as a source of streams: shards, their order after splits, reading."""
