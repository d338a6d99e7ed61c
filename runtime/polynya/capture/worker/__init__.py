"""The capture process: loads tables and follows the stream until it is asked to end."""
