"""Each call of a short life, struck in each way."""
