"""Iceberg through its Java library: files, the one commit, the layout of an internal table."""
