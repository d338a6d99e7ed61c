"""PostgreSQL as a source: its catalog, publication and slot, consistent views, and what is told."""
