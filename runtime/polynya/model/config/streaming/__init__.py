"""Settings of streams: what their messages mean, where they come from, what they become."""
