"""Engines that ask the tables, and what they may see."""
