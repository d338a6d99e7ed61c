"""A large first full load, by tasks."""
