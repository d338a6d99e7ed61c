"""The network agent: it executes operators' commands on the groups of machines of clusters."""
