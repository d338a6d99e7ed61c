"""Derived datasets: one SELECT over the tables of other tasks, and which of its rows can change."""
