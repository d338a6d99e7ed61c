"""The independent oracle: a plain-Python fold and the harness around it."""
