"""Which node should have which unit of work, and why: pure functions that the leader calls."""
