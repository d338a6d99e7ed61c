"""From a batch as it was read to one with the columns that its settings map."""
