"""Publishes the figures of a cluster while it has no node. Standard library and boto3 only."""
