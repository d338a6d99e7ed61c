"""What the tables promise: header columns, names, paths. Everything else builds on these."""
