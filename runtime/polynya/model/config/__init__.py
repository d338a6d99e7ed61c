"""What a project may configure: targets, tasks, datasets, policies, tests."""
