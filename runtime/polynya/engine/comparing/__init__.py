"""What `polynya compare` does: tables of a captured database against their views Current."""
