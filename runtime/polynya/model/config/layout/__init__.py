"""How the user lays a table out: what its files are parted by, and how their rows are sorted."""
