"""What leaves a table that nobody reads any more: snapshots, files, and too many manifests."""
