"""Events of Debezium out of the landed batches of a stream."""
