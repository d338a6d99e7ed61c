"""Take landed records into an internal table: changes, first loads, reloads."""
