"""The independent oracle: a plain-Python fold and the harness around it. Imports nothing of the engine."""
