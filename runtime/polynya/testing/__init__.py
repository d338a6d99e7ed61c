"""In-memory fakes of the ports, and the runner of users' tests of their tasks."""
