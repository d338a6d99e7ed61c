"""Servers of others on this machine, for the demo, the benchmarks and the tests."""
