"""End-to-end tests: a project folder goes in through files, tables come out through the CLI."""
