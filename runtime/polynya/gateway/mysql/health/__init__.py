"""What is told of a MariaDB or MySQL server: whether it can be captured, what its binlog keeps."""
