"""Views of the tables for other engines, one module for each dialect."""
