"""Files that Qlik Replicate writes to S3, each with a `.dfm` file that describes it."""
