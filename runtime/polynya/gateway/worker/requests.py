"""What a running capture is asked for."""

from __future__ import annotations

import json
import queue
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asks for: `resume` suspended tables, or `reload`; no tables are all."""

    type: str
    tables: tuple[str, ...] = ()

    @classmethod
    def of_line(cls, line: bytes) -> Request:
        """From a line of the input. Raises ValueError."""
        try:
            said = json.loads(line)
            return cls(str(said["type"]), tuple(str(name) for name in said["tables"]))
        except (KeyError, TypeError):
            raise ValueError("a line of the input is no request") from None


def taken(requests: queue.SimpleQueue[Request]) -> list[Request]:
    """All that have come so far."""
    found = []
    while not requests.empty():
        found.append(requests.get())
    return found
