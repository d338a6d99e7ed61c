"""Long actions of the API: each is one process of `polynya`, kept on disk until it is old."""
