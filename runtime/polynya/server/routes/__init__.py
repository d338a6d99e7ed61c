"""The routes of the API, one module for each kind of resource."""
