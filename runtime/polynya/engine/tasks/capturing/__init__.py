"""A capture at work: its process, what is asked of it, and what it says."""
