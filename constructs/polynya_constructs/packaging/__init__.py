"""The runtime as two archives that instances fetch from S3; knows nothing of the CDK."""
