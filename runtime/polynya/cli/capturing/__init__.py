"""Verbs of captures: connections to databases, and what is landed of them."""
