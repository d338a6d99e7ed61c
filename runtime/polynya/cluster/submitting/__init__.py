"""Jobs that do not work in the agent's own session: elsewhere in AWS, or in a process beside it."""
