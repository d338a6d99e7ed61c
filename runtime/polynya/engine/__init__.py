"""The engine runs tasks: it finds what has landed, copies, decides when to apply, and replays."""
