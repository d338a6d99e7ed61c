"""Agents of a simulated cluster: the real code of coordination, simulated time, stores, faults."""
