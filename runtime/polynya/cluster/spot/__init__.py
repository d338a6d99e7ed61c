"""What AWS says to an instance about its end: notices, recommendations, lifecycle states."""
