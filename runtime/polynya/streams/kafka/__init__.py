"""Apache Kafka as a source of streams, read through Spark."""
