"""Settings of what keeps tables in shape."""
