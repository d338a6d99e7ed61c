"""What a message means: one module for each type of content, bytes to records."""
