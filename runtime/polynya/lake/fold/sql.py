"""Values as SQL text. Identifiers are quoted by `model.contract.identifiers`."""

from __future__ import annotations

from datetime import UTC, datetime

from polynya.model.contract.identifiers import literal

__all__ = ["literal", "timestamp_literal"]


def timestamp_literal(moment: datetime) -> str:
    """SQL literal of a UTC time with microseconds."""
    return f"TIMESTAMP '{moment.astimezone(UTC).isoformat(sep=' ')}'"
