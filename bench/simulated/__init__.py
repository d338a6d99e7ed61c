"""Simulators of AWS's documented behaviour, one step a minute, seeded; nothing here calls AWS."""
