"""Maintenance at work beside copies and applies."""
