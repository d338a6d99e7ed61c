"""What is made of each record: the columns of its table."""
