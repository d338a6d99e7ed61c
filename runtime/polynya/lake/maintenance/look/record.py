"""What a table remembers of its maintenance: a property of the table, as JSON.

It says when each action was last taken, what was expected of it and what it did. So a process that
starts knows what the one before did, `status` shows it, and the rule can be held to what came true.
It is not part of any state: a table whose property is gone or unreadable only knows less.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final

from polynya.lake.maintenance.base import Outcome
from polynya.model.config.maintenance.actions import ACTIONS, ActionName

#: The property of the table.
PROPERTY: Final = "polynya.maintenance"


@dataclass(frozen=True, slots=True)
class Done:
    """One action that was taken. Sizes in bytes, `gain` in bytes per hour.

    `expected_*` are what the rule reckoned with, `gain` and `cost` what came true. `rows` are those
    of the table then, `delete_files` those that it had afterwards.
    """

    at: datetime
    why: str
    whole: bool = True
    expected_gain: int = 0
    expected_cost: int = 0
    expected_written: int = 0
    gain: int = 0
    cost: int = 0
    seconds: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0
    freed_bytes: int = 0
    files_removed: int = 0
    files_added: int = 0
    rows: int = 0
    delete_files: int = 0

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        at: datetime,
        *,
        gain: int,
        cost: int,
        written: int,
        rows: int,
        delete_files: int = 0,
    ) -> Done:
        """An outcome beside what was expected of it."""
        return cls(
            at=at,
            why=outcome.why,
            whole=outcome.whole,
            expected_gain=gain,
            expected_cost=cost,
            expected_written=written,
            seconds=outcome.seconds,
            read_bytes=outcome.read_bytes,
            written_bytes=outcome.written_bytes,
            freed_bytes=outcome.freed_bytes,
            files_removed=outcome.files_removed,
            files_added=outcome.files_added,
            rows=rows,
            delete_files=delete_files,
        )


@dataclass(frozen=True, slots=True)
class Record:
    """What was done to a table. `began` is when the first action was taken, None before it."""

    began: datetime | None = None
    last: Mapping[ActionName, Done] = field(default_factory=dict)

    @property
    def newest(self) -> tuple[ActionName, Done] | None:
        """The action that was taken last."""
        return max(self.last.items(), key=lambda one: one[1].at, default=None)

    def with_done(self, action: ActionName, done: Done) -> Record:
        """The same after an action."""
        return replace(self, began=self.began or done.at, last={**self.last, action: done})

    def to_json(self) -> str:
        """The text of the property."""
        began = None if self.began is None else self.began.isoformat()
        last = {
            action: {**asdict(done), "at": done.at.isoformat()}
            for action, done in self.last.items()
        }
        return json.dumps({"began": began, "last": last}, separators=(",", ":"))

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Record:
        """What the properties of a table say; an empty record when they say nothing of use."""
        try:
            said = json.loads(properties.get(PROPERTY, "{}"))
            began = said.get("began")
            return cls(
                None if began is None else _moment(began),
                {name: _done(said["last"][name]) for name in ACTIONS if name in said["last"]},
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()


_KNOWN: Final = frozenset(one.name for one in fields(Done))


def _done(said: Mapping[str, Any]) -> Done:
    values = {name: value for name, value in said.items() if name in _KNOWN}
    return Done(**{**values, "at": _moment(said["at"])})


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(text)
    return found
