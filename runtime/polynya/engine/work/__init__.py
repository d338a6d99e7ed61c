"""The steps of one dataset: copy a batch, apply if it is worth it, publish views, report."""
