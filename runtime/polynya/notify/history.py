"""What was told, held back and dropped in the last 30 days, below the warehouse.

One object for each turn of a process in which something of this happened, in a folder for its day.
Whoever may write the warehouse may write these objects: they are read within limits, and a damaged
one counts as none.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from polynya.model.config.notification import Cause, Severity
from polynya.notify.conditions import Key
from polynya.notify.decide import Notice, NoticeKind, NotificationDecision
from polynya.store.object_store import ObjectStore

log = logging.getLogger(__name__)

FOLDER: Final = ".polynya/notifications/history"
#: How long it is kept.
KEPT: Final = timedelta(days=30)
#: Of an object that is read.
_MAX_BYTES: Final = 2 * 1024 * 1024
#: Of one object: 5,000 datasets that fail at once are one message, and so many lines here.
MOST_ENTRIES: Final = 1000
#: Objects that one page looks at.
_MOST_OBJECTS: Final = 50
_DAY: Final = "%Y%m%d"

_Text: TypeAlias = Annotated[str, Field(max_length=8192)]
#: `held` waits for `until`; `dropped` is never sent; `failed` is tried again; `given_up` is not.
NoticeResult: TypeAlias = Literal["sent", "held", "dropped", "failed", "given_up"]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class HistoryEntry(_Stored):
    """What became of one notice on one route, and why. Holds no text of an error and no row."""

    at: datetime
    route: _Text
    sender: _Text
    result: NoticeResult
    reason: _Text
    until: datetime | None = None
    kind: NoticeKind
    cause: Cause
    name: _Text
    detail: _Text = ""
    task: _Text | None = None
    severity: Severity
    title: _Text
    code: _Text | None = None
    since: datetime


class _HistoryObject(_Stored):
    format: Literal[1] = 1
    entries: tuple[HistoryEntry, ...] = Field(max_length=MOST_ENTRIES)


#: What waits on each route: notices by what tells them apart.
Held: TypeAlias = Mapping[str, Mapping[tuple[Key, NoticeKind], Notice]]
#: An entry before it is written: when, route, result, reason, until, and the notice.
Change: TypeAlias = tuple[datetime, str, NoticeResult, str, datetime | None, Notice]


def changes_of(
    held: Held,
    decisions: Iterable[NotificationDecision],
    failing: Callable[[str], bool],
    now: datetime,
) -> tuple[list[Change], Held]:
    """What begins to wait, and what is dropped because it is no longer due; what waits now. Pure.

    Args:
        held: what waited before.
        decisions: of this turn.
        failing: whether the channel of a route fails, so that its notices were told of as failed.
        now: this moment.
    """
    found: list[Change] = []
    after: dict[str, dict[tuple[Key, NoticeKind], Notice]] = {}
    due: set[tuple[str, Key, NoticeKind]] = set()
    for one in decisions:
        route = one.route.id
        waits = {(notice.condition.key, notice.kind): notice for notice in one.waiting}
        due |= {(route, notice.condition.key, notice.kind) for notice in one.notices}
        if waits:
            after[route] = waits
        before = held.get(route, {})
        if not failing(route):
            found += [
                (now, route, "held", one.reason, one.until, notice)
                for key, notice in waits.items()
                if key not in before
            ]
    for route, notices in held.items():
        for (key, kind), notice in notices.items():
            gone = (key, kind) not in after.get(route, {}) and (route, key, kind) not in due
            if gone and kind == "opened":
                reason = "it was over before it could be sent"
                found.append((now, route, "dropped", reason, None, notice))
            elif gone and kind == "resolved":
                found.append((now, route, "dropped", "it began again", None, notice))
    return found, after


class NotificationHistory:
    """The history of one warehouse, in a store whose root is the warehouse.

    It is `opened` when it is needed. Every method raises what the store raises.
    """

    def __init__(self, opened: Callable[[], ObjectStore]) -> None:
        self._store = cache(opened)
        self._cleared = ""

    def write(self, sender: str, changes: Sequence[Change], now: datetime) -> None:
        """Write what happened at a moment; once a day, remove what is too old."""
        if not changes:
            return
        entries = tuple(_entry(sender, change) for change in changes[-MOST_ENTRIES:])
        data = _HistoryObject(entries=entries).model_dump_json(exclude_defaults=True).encode()
        moment = now.astimezone(UTC)
        name = hashlib.sha256(sender.encode("utf-8", "surrogatepass") + data).hexdigest()[:12]
        path = f"{FOLDER}/{moment:{_DAY}}/{moment:%H%M%S%f}-{name}.json"
        self._store().put(path, data)
        if self._cleared != (day := f"{moment:{_DAY}}"):
            self._cleared = day
            first = f"{moment - KEPT:{_DAY}}"
            for info in list(self._store().list(FOLDER)):
                if info.path[len(FOLDER) + 1 :] < first:
                    self._store().delete(info.path)

    def page(
        self,
        limit: int,
        before: str | None = None,
        wanted: Callable[[HistoryEntry], bool] = lambda _: True,
    ) -> tuple[list[HistoryEntry], str | None]:
        """Entries, the newest first, and the place of the next page; None at the end.

        A page may have fewer than `limit` entries: it looks at 50 objects at most.
        """
        name, _, index = (before or "").partition(":")
        ids = [info.path[len(FOLDER) + 1 :] for info in self._store().list(FOLDER)]
        chosen = [one for one in reversed(ids) if not name or one <= name]
        found: list[HistoryEntry] = []
        for one in chosen[:_MOST_OBJECTS]:
            start = int(index) if one == name and index.isdecimal() else 0
            for place, entry in enumerate(self._entries(one)):
                if place < start or not wanted(entry):
                    continue
                if len(found) == limit:
                    return found, f"{one}:{place}"
                found.append(entry)
        rest = chosen[_MOST_OBJECTS:]
        return found, f"{rest[0]}:0" if rest else None

    def _entries(self, id_: str) -> Iterator[HistoryEntry]:
        try:
            data = self._store().read(f"{FOLDER}/{id_}", _MAX_BYTES).data
            yield from _HistoryObject.model_validate_json(data).entries
        except FileNotFoundError:
            return
        except ValidationError:
            log.warning("%s/%s is not what was written and is ignored", FOLDER, id_)


def _entry(sender: str, change: Change) -> HistoryEntry:
    at, route, result, reason, until, notice = change
    condition = notice.condition
    return HistoryEntry(
        at=at, route=route, sender=sender[:2000], result=result, reason=reason[:2000],
        until=until, kind=notice.kind, cause=condition.key.cause, name=condition.key.name[:2000],
        detail=condition.key.detail[:2000], task=condition.task, severity=condition.severity,
        title=condition.title, code=condition.code, since=condition.since,
    )  # fmt: skip
