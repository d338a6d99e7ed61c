"""An apply without a query: files are read as Arrow, and events in order are folded in memory."""
