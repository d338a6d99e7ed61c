"""What keeps a table in shape: each action changes files and metadata, and never a result."""
