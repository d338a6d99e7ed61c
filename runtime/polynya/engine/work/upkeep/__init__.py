"""Which action of maintenance to take, with its reason, in a budget: pure."""
