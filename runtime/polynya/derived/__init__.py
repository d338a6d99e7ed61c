"""Tables that queries and flows derive from other tables: what they read, as text."""
