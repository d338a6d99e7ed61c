"""Compares captured tables with their database: ranges of keys, rows, then proof."""
