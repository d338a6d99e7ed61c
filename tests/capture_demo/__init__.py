"""A captured database on one machine: a real server, a workload, faults, and the comparison."""
