"""Projects that are written, run and read back, and what they should show."""
