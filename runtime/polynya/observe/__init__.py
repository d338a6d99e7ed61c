"""What happens in the engine, as events."""
