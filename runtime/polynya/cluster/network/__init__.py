"""The network agent: it carries out on a cluster's group of machines what people ask of it."""
