"""What a running capture is asked for."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asks for: `resume` suspended tables, or `reload`; no tables are all."""

    type: str
    tables: tuple[str, ...] = ()

    @classmethod
    def of_line(cls, line: bytes) -> Request:
        """From a line of the input. Raises ValueError."""
        try:
            return cls.of(json.loads(line))
        except (KeyError, TypeError):
            raise ValueError("a line of the input is no request") from None

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Request:
        """From what `polynya.capture.wire.request` gives. Raises KeyError or TypeError."""
        return cls(str(said["type"]), tuple(str(name) for name in said["tables"]))


def taken(requests: queue.SimpleQueue[Request]) -> list[Request]:
    """All that have come so far."""
    found = []
    while not requests.empty():
        found.append(requests.get())
    return found


def is_for_all(asked: Iterable[Request]) -> bool:
    """Whether somebody asks for a load of all tables."""
    return any(one.type == "reload" and not one.tables for one in asked)
