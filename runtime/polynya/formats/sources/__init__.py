"""What is remembered of a source beside its columns: the names in its keys, the eras of its log."""
