"""The Spot fallback: `decision` decides, `handler` reads the group and does it."""
