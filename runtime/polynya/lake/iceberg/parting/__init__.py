"""How the files of a table are parted: its specs, and the values of partitions."""
