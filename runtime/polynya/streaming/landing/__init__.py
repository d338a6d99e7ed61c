"""The log of landed batches of one table, and the step that adds the next one."""
