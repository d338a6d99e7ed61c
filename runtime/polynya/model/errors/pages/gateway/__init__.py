"""Pages of the gateway, one module for each of its parts."""
