"""Every event of automations: how it is made, what it says to people and to programs."""

from __future__ import annotations

from typing import Any

from polynya.model.errors import OperationError
from polynya.observe import automations
from polynya.observe.events import Event, Level

BROKEN = OperationError("POLYNYA-AUT-008", "it cannot be read")
_RUN: dict[str, Any] = {"subject": "nightly", "run": "1", "state": "left_out", "why": "asked"}

OF_AUTOMATIONS: list[tuple[Event, Level, str, dict[str, Any]]] = [
    (
        automations.AutomationEnded(**_RUN, seconds=2.04),
        Level.NOTE,
        "automation nightly: left out in 2.0 s, asked",
        {**_RUN, "seconds": 2.04, "code": None},
    ),
    (
        automations.AutomationFailed(subject="n1", error=BROKEN),
        Level.WARNING,
        "n1: it cannot be read (POLYNYA-AUT-008)",
        {
            "subject": "n1", "code": "POLYNYA-AUT-008", "message": "it cannot be read",
            "retryable": False,
        },
    ),
]  # fmt: skip
