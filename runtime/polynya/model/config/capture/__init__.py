"""Settings of captures: the connection to a database, and what of it is landed."""
