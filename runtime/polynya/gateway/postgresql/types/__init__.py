"""Each type of PostgreSQL: what Debezium's schema says of it, and SQL that writes its values so."""
