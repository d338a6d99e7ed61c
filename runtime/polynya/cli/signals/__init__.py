"""What Ctrl-C and SIGTERM mean to a command: held while it starts, then a wish to stop."""
