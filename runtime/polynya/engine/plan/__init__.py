"""What a changed configuration does to the tables of a project."""
