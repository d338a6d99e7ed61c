"""Projects to try, and the demo that runs one of them and checks the result."""
