"""The node agent: it runs the tasks of a configuration and shares them with other nodes."""
