"""The project of the newcomer: what lands in it, what it shows, how soon."""
