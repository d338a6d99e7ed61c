"""The two one-row state files of an internal table: what has been copied and what has been applied.

They are the fence (semantics section 11): every commit removes the state file that it was based on
and adds its own. Position and totals live here and not in snapshot summaries, because those expire.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, Self

from polynya.model.config.reload import ReloadMode

Kind = Literal["copy", "apply"]


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who wrote the state, under which epoch, in which commit."""

    epoch: int = 0
    owner: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class _State:
    ownership: Ownership = field(default_factory=Ownership)

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a state; fields of newer versions are ignored, missing ones get their default."""
        known = {f.name for f in fields(cls)}
        values: dict[str, Any] = {k: v for k, v in json.loads(text).items() if k in known}
        values["ownership"] = Ownership(**values.get("ownership", {}))
        for name, kind in (
            ("reloading", Reloading),
            ("suspended", Suspension),
            ("retaining", Retaining),
        ):
            if values.get(name) is not None:
                values[name] = kind(**values[name])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Reloading:
    """A reload that has begun: its rows gather in the partition `reload` (semantics section 8).

    Its place in the order of events is right behind `place`, the change identifier that had been
    copied when it began; `number` counts the reloads of the dataset. `files` is how far each file
    was read, as in `CopyState`; `rows` have been loaded, `quarantined` records not. `started` is
    ISO 8601 in UTC. `extract` is the full extract that is loaded, None when a user asked for the
    reload.
    """

    mode: ReloadMode
    number: int
    started: str
    place: str
    files: dict[str, list[int]] = field(default_factory=dict)
    rows: int = 0
    quarantined: int = 0
    extract: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it holds rows and all of them could be read, so far."""
        return self.rows > 0 and not self.quarantined

    @property
    def tail(self) -> str:
        """Sequence tail of its events: behind every tail of a source, which are hexadecimal."""
        return f"~{self.number:06d}"

    @property
    def sequence(self) -> str:
        """Sequence of its events."""
        return self.place + self.tail

    @property
    def started_at(self) -> datetime:
        """When it began."""
        return datetime.fromisoformat(self.started)


@dataclass(frozen=True, slots=True)
class Suspension:
    """Why a dataset is not copied until somebody decides; nothing of it is lost meanwhile.

    `cause` is what was met (a kind of schema change, `bad_record`, `asked`), `reason` says it to
    people, `where` is the object or file. `since` is ISO 8601 in UTC.
    """

    cause: str
    reason: str
    where: str
    since: str


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
class CopyState(_State):
    """Source position and accounting of a dataset.

    `files` maps a landed file to [bytes, records read, complete 0 or 1]; files that left the
    landing zone are forgotten. `schema` maps each source column to its type, `void` while only
    NULLs were seen. `pending_since` is when the oldest change that may still be pending was copied.
    `task` is the task that fills the table. `members` lists, for the position of a whole task, the
    source tables that were met so far. `totals` counts records since the table exists: rows_in =
    rows_out + rows_filtered + rows_quarantined. `reloading` is a reload that has not ended,
    `reloads` counts those that have begun. `declared` are the columns of the source's newest
    schema, empty where it declares none; `unsent_texts`: see `unsent.py`. `suspended` tells why
    the dataset is not copied; `accepted` maps a cause of suspension to the policy that the next
    batch may use for it. `settled` says of such a position that the first run has ended, so that
    source tables which appear later are new ones. `behind` says that a shared capture was read on
    without this dataset. `called` is the name that its source table has since it was renamed.
    `settings` are those that the rows were written with (`model.recorded`), empty in tables of
    older versions. `last_extract` is the full extract applied last. Times are ISO 8601 in UTC.
    """

    files: dict[str, list[int]] = field(default_factory=dict)
    schema: dict[str, str] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    unsent: list[str] = field(default_factory=list)
    has_old_keys: bool = False
    totals: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    copied_to: str | None = None
    copied_at: str | None = None
    pending_since: str | None = None
    newest_event: str | None = None
    load_started: str | None = None
    members: list[str] = field(default_factory=list)
    settled: bool = False
    task: str | None = None
    reloading: Reloading | None = None
    reloads: int = 0
    declared: list[str] = field(default_factory=list)
    unsent_texts: dict[str, list[str]] = field(default_factory=dict)
    suspended: Suspension | None = None
    accepted: dict[str, str] = field(default_factory=dict)
    behind: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    last_extract: str | None = None
    called: str | None = None


@dataclass(frozen=True, slots=True)
class ApplyState(_State):
    """How far Changes were folded, and what later events need to know of the past.

    `truncates` lists every truncate as [change identifier, tail, epoch microseconds].
    `horizon` is the highest sequence of a tombstone that retention removed: older events go to
    quarantine. `oldest_tombstone` is when the oldest tombstone that is still kept was written.
    `retaining` tells of the applied events that are kept, None when none are.
    """

    truncates: list[list[Any]] = field(default_factory=list)
    horizon: str | None = None
    oldest_tombstone: str | None = None
    retaining: Retaining | None = None
    applied_to: str | None = None
    applied_at: str | None = None
    reason: str | None = None
    applies: int = 0
    seconds: float | None = None
    totals: dict[str, int] = field(default_factory=dict)
