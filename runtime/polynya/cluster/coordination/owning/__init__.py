"""What a node does with its plan: claim units, keep them, release them."""
