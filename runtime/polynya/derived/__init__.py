"""Tables that queries derive from other tables: what a query reads, as text."""
