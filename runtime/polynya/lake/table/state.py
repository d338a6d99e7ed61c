"""The two one-row state files of an internal table: what has been copied and what has been applied.

They are the fence (semantics section 11): every commit removes the state file that it was based on
and adds its own. Position and totals live there and not in snapshot summaries, because those
expire. What has been copied is in `copy_state.py`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass, field, fields
from typing import Any, Self

from polynya.lake.fold.truncates import Truncate


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who wrote the state, under which epoch, in which commit."""

    epoch: int = 0
    owner: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Retaining:
    """What the partition `retained` holds, of a dataset that keeps its applied events.

    Versions that entered the table up to `since` are the base: their events are not kept. None:
    every event since the table exists is kept. `latest` is when the newest kept events were
    applied, `oldest` the oldest; each is later than the one before, whatever the clock says.
    `rows` are in the partition. Times are engine time, ISO 8601 in UTC.
    """

    since: str | None = None
    latest: str | None = None
    oldest: str | None = None
    rows: int = 0


@dataclass(frozen=True, slots=True)
class ApplyState:
    """How far Changes were folded, and what later events need to know of the past.

    `truncates` lists every truncate; its JSON is [change identifier, tail, epoch microseconds].
    `horizon` is the highest sequence of a tombstone that retention removed: older events go to
    quarantine. `oldest_tombstone` is when the oldest tombstone that is still kept was written.
    `retaining` tells of the applied events that are kept, None when none are. `from_changes`
    counts the rows that were ever taken out of the partition Changes.
    """

    ownership: Ownership = field(default_factory=Ownership)
    truncates: list[Truncate] = field(default_factory=list)
    horizon: str | None = None
    oldest_tombstone: str | None = None
    retaining: Retaining | None = None
    applied_to: str | None = None
    applied_at: str | None = None
    reason: str | None = None
    applies: int = 0
    seconds: float | None = None
    totals: dict[str, int] = field(default_factory=dict)
    from_changes: int = 0

    def to_json(self) -> str:
        """The state as a table holds it."""
        truncates = [list(astuple(one)) for one in self.truncates]
        return json.dumps({**asdict(self), "truncates": truncates}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a state; fields of newer versions are ignored, missing ones get their default."""
        known = {f.name for f in fields(cls)}
        values: dict[str, Any] = {k: v for k, v in json.loads(text).items() if k in known}
        values["ownership"] = Ownership(**values.get("ownership", {}))
        if values.get("retaining") is not None:
            values["retaining"] = Retaining(**values["retaining"])
        values["truncates"] = [Truncate(*one) for one in values.get("truncates", ())]
        return cls(**values)
