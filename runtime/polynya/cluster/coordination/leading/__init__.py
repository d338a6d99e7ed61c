"""What a leader does: hold the lease, decide who has what, write the plans."""
