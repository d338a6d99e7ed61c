"""Files as a source of streams: which prefixes are listed, what is new, how it is read."""
