"""What commands ask for: plan, preview, compare, reload, replay, rebuild."""
