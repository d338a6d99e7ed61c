"""YAML and JSON documents whose values know their line and column, and problems in them."""
