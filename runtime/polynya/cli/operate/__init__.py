"""Commands that run tasks or change tables."""
