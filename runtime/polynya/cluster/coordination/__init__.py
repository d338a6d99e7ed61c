"""Coordination of a cluster: leases, the leader, plans, ownership and a member's turn."""
