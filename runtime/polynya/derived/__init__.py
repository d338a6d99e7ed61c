"""Derived datasets: one SELECT over other tables, and which of its rows can change."""
