"""Runs tasks: finds what has landed, copies it, decides when to apply, replays the quarantine."""
