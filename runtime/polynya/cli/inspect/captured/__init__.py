"""Captures as `polynya status` and `polynya landing status` show them."""
