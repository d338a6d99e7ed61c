"""Machines that are broken, and what is done to a run that is under way."""
