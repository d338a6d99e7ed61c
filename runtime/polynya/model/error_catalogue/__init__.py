"""The pages of the error codes, one module per family of codes."""
