"""Who does what in a cluster: sessions, the leader, plans, ownership and a member's turn."""
