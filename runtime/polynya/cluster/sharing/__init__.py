"""An agent's side of sharing: the thread of its member, and what follows for its jobs."""
