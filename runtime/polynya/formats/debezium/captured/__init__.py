"""The landed batches of Polynya's own captures: event lines after a header with their schemas."""
