"""Users' expressions and, later, streaming transforms. Nothing here starts Spark."""
