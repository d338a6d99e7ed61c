"""Code of AWS Lambda functions: each package is one function and needs nothing but boto3."""
