"""Apache Kafka as a source, read through Spark."""
