"""Times and places in the order that the rows of one copy depend on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Times:
    """Times of a copy.

    Attributes:
        now: engine time of the step.
        load_started: when the first load began; None: it begins now.
        horizon: the highest sequence whose tombstone was removed: older events cannot be placed any
            more. None where none was.
        follows: change identifier that all events come after (`routes.follows`), None where one may
            be late.
    """

    now: datetime
    load_started: datetime | None = None
    horizon: str | None = None
    follows: str | None = None
