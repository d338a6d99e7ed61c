"""An index of the keys of each large data file: beside the tables, disposable, never stale."""
