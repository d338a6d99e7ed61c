"""What a run is made of: time, machines, the store, the stream, tables, inputs."""
