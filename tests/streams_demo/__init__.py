"""Streams on one machine: real servers, faults, and the proof of the tables."""
