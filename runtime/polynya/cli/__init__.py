"""The `polynya` command: one module per group of commands, listed in `commands.py`."""
