"""The work of commands: plan, preview, compare, reload, replay, rebuild."""
