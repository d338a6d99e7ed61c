"""The demo of engines that read live tables while a feed goes on."""
