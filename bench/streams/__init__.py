"""Messages of Kafka become an append-only table: by Polynya, and by hand-written Spark."""
