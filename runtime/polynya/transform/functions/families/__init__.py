"""The functions, a module for each family, whose `FUNCTIONS` is its part of the table."""
