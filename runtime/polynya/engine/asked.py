"""Which engine people ask for. Apart from the engines, because every command line knows it."""

from __future__ import annotations

from enum import StrEnum


class Engine(StrEnum):
    """What answers statements; `auto` lets Spark answer what the embedded engine cannot."""

    AUTO = "auto"
    EMBEDDED = "embedded"
    SPARK = "spark"
