"""Messages of Kafka become an append-only table: by Polynya, and by Spark as people write it."""
