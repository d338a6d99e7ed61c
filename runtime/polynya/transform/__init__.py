"""Users' expressions and mappings. Nothing here starts Spark."""
