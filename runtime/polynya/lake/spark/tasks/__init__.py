"""Work that Spark gives to its tasks: Python in them, and how it is cancelled."""
