"""What commands ask of one dataset: configure, reload, rebuild, replay."""
