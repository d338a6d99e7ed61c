"""The capture process: loads tables and follows the stream of one database until told to end."""
