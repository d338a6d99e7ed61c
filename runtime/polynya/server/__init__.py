"""The API of a project: what it has, what it does, and the actions of people and programs."""
