"""Landed files: which there are, which are unread, and their decompressed content."""
