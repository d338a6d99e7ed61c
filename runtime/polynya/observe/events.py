"""What happens, as data: the engine emits events, others decide how to show or keep them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    `type` is a stable dotted name (`batch.copied`, `dataset.applied`, `dataset.failed`, …);
    `subject` names the task or `schema.dataset`; `fields` are JSON values, figures with their unit
    in the name (`_seconds`, `_bytes`).
    """

    type: str
    subject: str
    fields: Mapping[str, Any] = field(default_factory=dict)


EventSink = Callable[[Event], None]


def discard(event: Event) -> None:
    """A sink for nobody."""
    del event
