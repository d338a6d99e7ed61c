"""Reading what has landed: discovery, formats, typed batches."""
