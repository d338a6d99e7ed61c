"""Events, metrics and traces of Polynya."""
