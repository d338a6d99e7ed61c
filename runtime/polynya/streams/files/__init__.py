"""Files that others write as a source of streams."""
