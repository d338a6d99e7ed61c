"""Notifications: from what happens to messages, and their channels."""
