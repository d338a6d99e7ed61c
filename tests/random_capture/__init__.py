"""A random workload on a captured database, and a judge that shares no code with the engine."""
