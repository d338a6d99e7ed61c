"""Polynya: landed changes become live, atomic Apache Iceberg tables."""

from __future__ import annotations

__version__ = "0.1.0"
