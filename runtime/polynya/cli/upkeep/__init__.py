"""The verb that keeps tables in shape, and its words."""
