"""What a capture lands: its log, the position in it, and what is to be loaded next."""
