"""What a mirror remembers between its rounds, in a file of the warehouse.

It tells people how far the target is, and when the next try is due. What exists in the target is
asked there, so a lost or old file costs statements and nothing else.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final, Self

from polynya.lake.warehouse.readers import CLOCK_SKEW, Readers
from polynya.model.config.mirror import MirrorRefresh
from polynya.store.object_store import ObjectStore

log = logging.getLogger(__name__)

#: Below the warehouse, next to the registrations of readers.
FOLDER: Final = ".polynya/mirrors"
_MAX_FILE_BYTES: Final = 64 * 2**20
_FIRST_PAUSE: Final = timedelta(seconds=30)
_LONGEST_PAUSE: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class SourceCommit:
    """The newest commit of a dataset: metadata file, snapshot, when, and the time of its apply."""

    metadata: str
    snapshot: int
    committed_at: datetime
    applied_at: str | None


@dataclass(frozen=True, slots=True)
class MirroredTable:
    """How a dataset is shown. Times are ISO 8601 in UTC; None: not yet.

    `snapshot` and the next two are those of the commit that the target shows, `behind_since` is
    when a newer one was first seen. `failures` in a row led to `error`, with its code.
    """

    metadata: str | None = None
    snapshot: int | None = None
    committed_at: str | None = None
    applied_at: str | None = None
    refreshed_at: str | None = None
    behind_since: str | None = None
    failures: int = 0
    tried_at: str | None = None
    error: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class MirrorState:
    """All datasets of a mirror by `schema.view`.

    `shapes` is the digest of what the objects were last made for, `looked_at` when the target was
    last asked for its objects.
    """

    tables: Mapping[str, MirroredTable] = field(default_factory=dict)
    shapes: str | None = None
    looked_at: str | None = None

    def to_json(self) -> str:
        """The content of the file."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """The state in a file; an empty one for anything that is not one."""
        try:
            said: dict[str, Any] = json.loads(data)
            known = {one.name for one in fields(MirroredTable)}
            tables = {
                str(name): MirroredTable(**{k: v for k, v in table.items() if k in known})
                for name, table in said["tables"].items()
            }
            return cls(tables, said.get("shapes"), said.get("looked_at"))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            log.warning("the state of a mirror cannot be read; the target is asked instead")
            return cls()


def _path(task: str) -> str:
    return f"{FOLDER}/{task}.json"


def load_state(store: ObjectStore, task: str) -> MirrorState:
    """The state of a mirror, an empty one before its first round. Raises DependencyError."""
    try:
        return MirrorState.from_json(store.read(_path(task), _MAX_FILE_BYTES).data)
    except FileNotFoundError:
        return MirrorState()


def save_state(store: ObjectStore, task: str, state: MirrorState) -> None:
    """Write the state of a mirror. Raises DependencyError."""
    store.put(_path(task), state.to_json().encode())


def moment(text: str | None) -> datetime | None:
    """A stored time."""
    return None if text is None else datetime.fromisoformat(text)


@dataclass(frozen=True, slots=True)
class RefreshDecision:
    """Whether a table is refreshed now, and why; otherwise when to look again at the latest."""

    due: bool
    reason: str
    wait: timedelta | None = None


def decide(
    rules: MirrorRefresh, here: SourceCommit, there: MirroredTable, now: datetime, jitter: float
) -> RefreshDecision:
    """Whether a table of the target is to show a newer commit now.

    Args:
        rules: the settings.
        here: the newest commit.
        there: what the target shows.
        now: this moment.
        jitter: from 0 to 1, moves the pause after a failure by up to a quarter either way.
    """
    tried = moment(there.tried_at)
    if there.failures and tried is not None:
        pause = min(_FIRST_PAUSE * 2 ** min(there.failures - 1, 10), _LONGEST_PAUSE)
        again = tried + pause * (0.75 + jitter / 2)
        if again > now:
            return RefreshDecision(due=False, reason="it waits after a failure", wait=again - now)
    if there.metadata == here.metadata and not there.failures:
        return RefreshDecision(due=False, reason="it shows the newest commit")
    refreshed = moment(there.refreshed_at)
    if refreshed is None or there.failures:
        return RefreshDecision(due=True, reason="the last refresh failed, or never was")
    earliest = refreshed + rules.at_most_every
    if earliest > now:
        return RefreshDecision(due=False, reason="it was just refreshed", wait=earliest - now)
    if rules.schedule is not None:
        planned = rules.schedule.next_after(refreshed)
        if planned is None or planned > now:
            wait = None if planned is None else planned - now
            return RefreshDecision(due=False, reason="it is not yet due", wait=wait)
        return RefreshDecision(due=True, reason=f"its schedule named {planned:%Y-%m-%d %H:%M}")
    if not (rules.follows_commits or rules.automatic) and here.applied_at == there.applied_at:
        return RefreshDecision(due=False, reason="nothing was applied since")
    return RefreshDecision(due=True, reason="there is a newer commit")


def staleness(there: MirroredTable, now: datetime) -> timedelta:
    """How long the target has not shown what is here; zero where it shows the newest commit."""
    since = moment(there.behind_since)
    return timedelta() if since is None else max(now - since, timedelta())


def held_since(state: MirrorState, rules: MirrorRefresh, now: datetime) -> datetime | None:
    """The time of the oldest commit that the target shows, but not before the longest hold."""
    times = [moment(table.committed_at) for table in state.tables.values()]
    known = [time for time in times if time is not None]
    return max(min(known), now - rules.hold_snapshots) if known else None


def hold(
    readers: Readers, task: str, state: MirrorState, rules: MirrorRefresh, now: datetime
) -> None:
    """Keep maintenance from expiring what the target shows, for `hold_snapshots` at the longest.

    A mirror that runs no more holds nothing after that time: its registration ends by itself.
    """
    since = held_since(state, rules, now)
    if since is not None and rules.hold_snapshots:
        until = now + rules.hold_snapshots - 2 * CLOCK_SKEW
        readers.register(f"mirror-{task}", since=since, until=until, who=f"mirror {task}")
