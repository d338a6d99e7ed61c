"""Where the work of a target is done when this process does not do it."""
