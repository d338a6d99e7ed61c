"""Apache Kafka as a source of streams, read by a client in Spark's JVM."""
