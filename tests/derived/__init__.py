"""Derived datasets: statements, which of their rows can change, and a corpus."""
