"""Files that AWS DMS writes to S3."""
