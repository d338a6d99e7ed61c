"""What a capture lands: its log, its position, and records of the stream."""
