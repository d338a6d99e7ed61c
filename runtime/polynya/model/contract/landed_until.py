"""Up to where a reload from the source reads it again, as the state of a table holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LandedUntil:
    """The newest landed batch when the reload began: all that had landed is read, and no more.

    Attributes:
        path: of its object in the landing zone.
        size_bytes: of the object.
        end: position after it. Only the source understands it.
        records: messages that had landed up to there, since the table of batches began.
    """

    path: str
    size_bytes: int
    end: Mapping[str, Any]
    records: int
