"""The console: pages for people, over the same routes that programs ask."""
