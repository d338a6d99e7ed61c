"""Types of MariaDB and MySQL: their Connect schemas, and their values as Debezium writes them."""
