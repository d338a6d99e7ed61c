"""Compares tables of a database with what became of them: ranges of keys, then rows, then proof."""
