"""Benchmarks: one module per question, each with `main()` that prints its figures."""
