"""A real PostgreSQL is captured: rows and changes a second, age in the live view, memory."""
