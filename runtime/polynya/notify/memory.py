"""What outlasts a process: open conditions, what was told, and channels that fail.

One small object for each dataset or task with something open, below the warehouse, next to the
registered readers. An object is written when something begins, is told or ends, and deleted when
nothing of it is left. So a node that takes a unit over knows what was told about it. Whoever may
write the warehouse may write these objects: they are read within limits, and a damaged one counts
as none.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from polynya.model.config.notification import Cause, Severity
from polynya.notify.conditions import Condition, Conditions, Key
from polynya.notify.decide import Memory, RouteState, Told
from polynya.store.object_store import ObjectStore

log = logging.getLogger(__name__)

FOLDER: Final = ".polynya/notifications"
_OBJECTS: Final = f"{FOLDER}/open"
_CHANNELS: Final = f"{FOLDER}/failing"
#: Of an object that is read.
MAX_BYTES: Final = 512 * 1024
#: Folder of conditions that belong to no task; a task cannot be called like this.
_NO_TASK: Final = "-"

_Text: TypeAlias = Annotated[str, Field(max_length=8192)]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class StoredCondition(_Stored):
    """A condition as it is kept."""

    cause: Cause
    detail: _Text = ""
    severity: Severity
    title: _Text
    since: datetime
    seen: datetime
    code: _Text | None = None
    count: int = Field(default=0, ge=0)
    seconds: float = Field(default=0.0, ge=0.0)
    grace: float = Field(default=0.0, ge=0.0)
    fresh: bool = True


class StoredTold(_Stored):
    """That a route was told of a condition."""

    route: _Text
    at: datetime
    condition: StoredCondition


class StoredObject(_Stored):
    """What is open about one object, and who was told of it."""

    format: Literal[1] = 1
    name: _Text
    task: _Text | None = None
    conditions: tuple[StoredCondition, ...] = Field(default=(), max_length=1000)
    told: tuple[StoredTold, ...] = Field(default=(), max_length=10_000)


class FailingChannel(_Stored):
    """A route whose channel fails, as `polynya status` shows it."""

    format: Literal[1] = 1
    route: _Text
    sender: _Text
    failures: int
    since: datetime
    retry_at: datetime | None = None
    why: _Text = ""


def _stored(one: Condition) -> StoredCondition:
    return StoredCondition(
        cause=one.key.cause, detail=one.key.detail[:2000], severity=one.severity, title=one.title,
        since=one.since, seen=one.seen, code=one.code, count=one.count, seconds=one.seconds,
        grace=one.grace, fresh=one.fresh,
    )  # fmt: skip


def _condition(one: StoredCondition, name: str, task: str | None) -> Condition:
    return Condition(
        Key(one.cause, name, one.detail), task, one.severity, one.title, one.since, one.seen,
        one.code, one.count, one.seconds, one.grace, one.fresh,
    )  # fmt: skip


def stored_objects(conditions: Conditions, memory: Memory) -> dict[tuple[str | None, str], bytes]:
    """The objects by task and name. A lag is measured again, so it is kept only where it was told.

    `conditions` are those of the process, which hold no lag.
    """
    opened: dict[tuple[str | None, str], list[StoredCondition]] = {}
    told: dict[tuple[str | None, str], list[StoredTold]] = {}
    for key, one in conditions.items():
        opened.setdefault((one.task, key.name), []).append(_stored(one))
    for route, entries in memory.items():
        for key, entry in entries.items():
            place = (entry.condition.task, key.name)
            kept = StoredTold(route=route, at=entry.at, condition=_stored(entry.condition))
            told.setdefault(place, []).append(kept)
    return {
        (task, name): StoredObject(
            name=name,
            task=task,
            conditions=tuple(opened.get((task, name), ())),
            told=tuple(told.get((task, name), ())),
        )
        .model_dump_json(exclude_defaults=True)
        .encode()
        for task, name in opened.keys() | told.keys()
    }


class NotificationStore:
    """The objects of one warehouse, in a store whose root is the warehouse.

    It is `opened` when it is needed. Every method raises what the store raises.
    """

    def __init__(self, opened: Callable[[], ObjectStore]) -> None:
        self.opened = cache(opened)
        self._written: dict[tuple[str | None, str], bytes] = {}

    def read(
        self, mine: Callable[[str | None, str], bool]
    ) -> tuple[dict[Key, Condition], dict[str, dict[Key, Told]]]:
        """Conditions and what was told of the objects that are `mine`, by task and name."""
        conditions: dict[Key, Condition] = {}
        memory: dict[str, dict[Key, Told]] = {}
        for stored in self._objects():
            task, name = stored.task, stored.name
            if not mine(task, name):
                continue
            for one in stored.conditions:
                condition = _condition(one, name, task)
                conditions[condition.key] = condition
            for entry in stored.told:
                condition = _condition(entry.condition, name, task)
                memory.setdefault(entry.route, {})[condition.key] = Told(entry.at, condition)
            self._written[task, name] = b""
        return conditions, memory

    def _objects(self) -> Iterable[StoredObject]:
        for found in list(self.opened().list(_OBJECTS)):
            if found.size > MAX_BYTES:
                continue
            try:
                data = self.opened().read(found.path, MAX_BYTES).data
                stored = StoredObject.model_validate_json(data)
            except FileNotFoundError:
                continue
            except ValidationError:
                log.warning("%s is not what was written and is ignored", found.path)
                continue
            if _path(stored.task, stored.name) == found.path:
                yield stored

    def write(self, conditions: Conditions, memory: Memory) -> None:
        """Write the objects that changed, and delete those of which nothing is left."""
        now = stored_objects(conditions, memory)
        for place, data in now.items():
            if self._written.get(place) != data:
                self.opened().put(_path(*place), data)
                self._written[place] = data
        for place in self._written.keys() - now.keys():
            self.opened().delete(_path(*place))
            del self._written[place]

    def leave(self, places: Collection[tuple[str | None, str]]) -> None:
        """Another process has these objects from now on: neither write nor delete them."""
        for place in places:
            self._written.pop(place, None)

    def failing(self, route: str, sender: str, state: RouteState, since: datetime) -> None:
        """Show that a channel fails, or with no failure that it works."""
        path = f"{_CHANNELS}/{_digest(f'{sender} {route}')}.json"
        if not state.failures:
            self.opened().delete(path)
            return
        shown = FailingChannel(
            route=route, sender=sender[:2000], failures=state.failures, since=since,
            retry_at=state.retry_at, why=state.why[:2000],
        )  # fmt: skip
        self.opened().put(path, shown.model_dump_json().encode())

    def failing_channels(self) -> list[FailingChannel]:
        """The channels that fail, by route."""
        found = []
        for one in list(self.opened().list(_CHANNELS)):
            try:
                data = self.opened().read(one.path, MAX_BYTES).data
                found.append(FailingChannel.model_validate_json(data))
            except (FileNotFoundError, ValidationError):
                continue
        return sorted(found, key=lambda one: (one.route, one.sender))

    def open_objects(self, tasks: Collection[str]) -> list[StoredObject]:
        """Everything that is open about these tasks and about no task, by task and name."""
        found = [one for one in self._objects() if one.task is None or one.task in tasks]
        return sorted(found, key=lambda one: (one.task or "", one.name))


def _path(task: str | None, name: str) -> str:
    return f"{_OBJECTS}/{task or _NO_TASK}/{_digest(name)}.json"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def merged(before: Mapping[str, Mapping[Key, Told]], more: Memory) -> dict[str, dict[Key, Told]]:
    """What routes were told, from two memories; the later of two entries counts."""
    found = {route: dict(entries) for route, entries in before.items()}
    for route, entries in more.items():
        mine = found.setdefault(route, {})
        for key, told in entries.items():
            if key not in mine or mine[key].at < told.at:
                mine[key] = told
    return found
