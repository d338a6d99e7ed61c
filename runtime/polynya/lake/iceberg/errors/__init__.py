"""What Iceberg, its catalog and the machine say, as errors that people can act on."""
