"""How far an operation has come, from the events of its process and the clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

#: An operation without a change for so many seconds is said to stand still.
STILL_SECONDS: Final = 60.0
#: Fields of an event that change although nothing moves.
_CLOCKS: Final = frozenset({"seconds", "left_seconds"})


@dataclass(frozen=True, slots=True)
class Progress:
    """What a person wants to know of a running operation.

    Attributes:
        phase: the step that is running, such as `applying shop.users`; None before the first.
        done, known: rows done, and rows that are known to be there in total.
        rate: rows in a second since the step began.
        left_seconds: time left at that rate, None if it is unknown.
        still_seconds: time since anything moved, once that is STILL_SECONDS or more.
    """

    phase: str | None = None
    done: int | None = None
    known: int | None = None
    rate: float | None = None
    left_seconds: float | None = None
    still_seconds: float | None = None


@dataclass(slots=True)
class Seen:
    """What the events of an operation have told so far; `moved` is when something last changed."""

    moved: float
    steps: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def take(self, events: Iterable[Mapping[str, Any]], now: float) -> None:
        """Take further events, which came up to now."""
        for event in events:
            subject = str(event.get("subject", ""))
            if event.get("type") == "step.ended":
                self.steps.pop(subject, None)
            elif event.get("type") == "step.progress":
                if _moving(self.steps.get(subject, {})) == _moving(event):
                    continue
                self.steps[subject] = event
            self.moved = now


def progress(seen: Seen, now: float) -> Progress:
    """How far an operation is at a moment: by its step that has the most rows left."""
    still = now - seen.moved
    shown_still = round(still) if still >= STILL_SECONDS else None
    if not seen.steps:
        return Progress(still_seconds=shown_still)
    step = max(seen.steps.values(), key=lambda one: _number(one.get("rows_left")) or 0)
    done, left = _number(step.get("rows")), _number(step.get("rows_left"))
    seconds = _number(step.get("seconds"))
    return Progress(
        phase=" ".join(str(step[part]) for part in ("step", "subject") if part in step),
        done=None if done is None else int(done),
        known=None if done is None or left is None else int(done + left),
        rate=round(done / seconds, 1) if done is not None and seconds else None,
        left_seconds=_number(step.get("left_seconds")),
        still_seconds=shown_still,
    )


def _moving(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in _CLOCKS}


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
