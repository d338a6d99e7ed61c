"""A cluster on one machine: agents that share a project, faults, and the proof of the tables."""
