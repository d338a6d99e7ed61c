"""What a person asks of a cluster, and how a person sees it: objects of the coordination place."""
