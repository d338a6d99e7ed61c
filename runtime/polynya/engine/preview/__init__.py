"""What the next files would become, without a write and without a JVM."""
