"""The `polynya` command: one module per verb, registered by name in `main.py`."""
