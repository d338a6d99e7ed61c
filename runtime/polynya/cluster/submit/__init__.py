"""Work done outside the agent: EMR Serverless, Glue, or another process."""
