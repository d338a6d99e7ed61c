"""Automations: triggers that are due, runs of actions, and the log of both."""
