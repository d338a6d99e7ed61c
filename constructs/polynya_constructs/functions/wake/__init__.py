"""Wakes an empty group when something lands. Standard library and boto3 only."""
