"""Statements over the live views, answered in this process by DuckDB where that is surely right."""
