"""Long readers register in the warehouse, so that no snapshot they read expires.

A snapshot stays for hours after another one took its place. Most queries take seconds and write
nothing. A query that runs longer writes a small file into the warehouse and renews it; the file of
a dead reader expires by itself. The file protects all tables of the warehouse, because only the
plan of a query knows which tables it reads.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Final
from uuid import uuid4

from polynya.model.config.maintenance import SnapshotExpiry
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.store.clock import Clock, SystemClock
from polynya.store.object_store import ObjectStore
from polynya.store.places import store_at

log = logging.getLogger(__name__)

#: Below the warehouse, next to the folders of its schemas.
FOLDER: Final = ".polynya/readers"
#: By how much two clocks may differ.
CLOCK_SKEW: Final = timedelta(minutes=5)
#: How long a file protects its reader after it was written.
READER_LIFETIME: Final = timedelta(minutes=10)
#: A reader writes its file after this share of the shortest time for which snapshots stay...
_REGISTER_SHARE: Final = 8
#: ...or after this time.
_REGISTER_WITHIN: Final = timedelta(minutes=15)
_MAX_FILE_BYTES: Final = 4096
#: How long a reader that has ended waits for a write that is under way.
_LET_GO_SECONDS: Final = 5.0
#: The longest time that a reader may register for.
_MAX_AHEAD: Final = timedelta(days=1)
#: What names a snapshot of the past in SQL.
_PAST_SNAPSHOT: Final = re.compile(
    r"\bAS\s+OF\b|\b(?:snapshot_id|at_timestamp|branch|tag)_\w", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class RunningReader:
    """A reader at work. It reads what was current at `since` or later; None: anything."""

    since: datetime | None
    until: datetime
    who: str = ""


def reads_the_past(statements: str) -> bool:
    """Whether statements may name snapshots that are not current."""
    return _PAST_SNAPSHOT.search(statements) is not None


class Readers:
    """The readers of one warehouse, in a store whose root is the warehouse.

    It is `opened` when it is needed.
    """

    def __init__(self, opened: Callable[[], ObjectStore], clock: Clock) -> None:
        # Most readers never write, and a client of S3 takes longer to make than they read.
        self._store = cache(opened)
        self._clock = clock

    @classmethod
    def of(cls, target: ResolvedTarget, clock: Clock) -> Readers:
        """The readers of the warehouse of a target."""
        return cls(partial(store_at, target.warehouse, target.aws), clock)

    def at_work(self) -> list[RunningReader]:
        """All registered readers whose files have not expired.

        Files that expired long ago are removed. Other files are ignored.
        """
        store, now, readers = self._store(), self._clock.now(), []
        for info in store.list(FOLDER):
            try:
                content = store.read(info.path, _MAX_FILE_BYTES).data
            except FileNotFoundError:
                continue
            reader = _read(content)
            if reader is None or reader.until > now + _MAX_AHEAD:
                log.warning("%s is not the registration of a reader, and is not heeded", info.path)
            elif reader.until + CLOCK_SKEW > now:
                readers.append(reader)
            elif reader.until + 10 * READER_LIFETIME < now:
                store.delete(info.path)
        return readers

    def register(self, name: str, *, since: datetime, until: datetime, who: str) -> None:
        """Register a reader that is no process of ours, such as the target of a mirror.

        A registration of the same `name` is replaced. It is heeded for a day at the longest.
        Raises DependencyError when the warehouse does not answer.
        """
        document = {"since": since.isoformat(), "until": until.isoformat(), "who": who}
        self._store().put(f"{FOLDER}/{name}.json", json.dumps(document).encode())

    @contextmanager
    def reading(self, *, shortest: timedelta, past: bool = False) -> Iterator[None]:
        """Read inside; `shortest` is the least time for which a table keeps its snapshots.

        With `past` the reader may read any snapshot, and registers immediately. A warehouse that
        rejects the file does not prevent reading: then only the age of snapshots protects the
        reader.
        """
        registration = _Registration(self._store, self._clock, None if past else self._clock.now())
        first = timedelta() if past else min(shortest / _REGISTER_SHARE, _REGISTER_WITHIN)
        if past:
            registration.write()
        thread = threading.Thread(
            target=registration.keep, args=(first,), name="reader", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            registration.ended.set()
            thread.join(timeout=_LET_GO_SECONDS)
            registration.remove()


class _Registration:
    """The file of one reader."""

    def __init__(
        self, store: Callable[[], ObjectStore], clock: Clock, since: datetime | None
    ) -> None:
        self.ended = threading.Event()
        self._store, self._clock, self._since = store, clock, since
        self._path = f"{FOLDER}/{uuid4()}.json"
        self._who = f"process {os.getpid()} on {socket.gethostname()}"
        self._registered = False

    def keep(self, first: timedelta) -> None:
        """Write the file after `first`, and again in time, until the reader ends."""
        wait = first if not self._registered else READER_LIFETIME / 3
        while not self.ended.wait(wait.total_seconds()):
            self.write()
            wait = READER_LIFETIME / 3

    def write(self) -> None:
        """Write the file."""
        since = None if self._since is None else self._since.isoformat()
        until = (self._clock.now() + READER_LIFETIME).isoformat()
        text = json.dumps({"since": since, "until": until, "who": self._who})
        try:
            self._store().put(self._path, text.encode())
            self._registered = True
        except (OSError, PolynyaError) as error:
            log.warning("a long query cannot say that it reads: %s", error)

    def remove(self) -> None:
        """Remove the file, if there is one."""
        if not self._registered:
            return
        try:
            self._store().delete(self._path)
        except (OSError, PolynyaError) as error:
            log.debug("%s stays until it ends: %s", self._path, error)


def _read(content: bytes) -> RunningReader | None:
    try:
        document = json.loads(content)
        since = document["since"]
        return RunningReader(
            None if since is None else _moment(since),
            _moment(document["until"]),
            str(document["who"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment


@contextmanager
def reading(project: LoadedProject, statements: str = "") -> Iterator[None]:
    """Read tables inside this block: no expiry of Polynya removes what is read there.

    `statements` is the SQL that is answered, "" for what reads the newest snapshots only.
    """
    readers = Readers.of(project.target, SystemClock())
    with readers.reading(shortest=shortest_expiry(project), past=reads_the_past(statements)):
        yield


def shortest_expiry(project: LoadedProject) -> timedelta:
    """The least time for which a table of the project keeps its snapshots."""
    settings = [dataset.maintenance for dataset in project.datasets()]
    settings += [task.defaults.maintenance for task in project.tasks if task.defaults.maintenance]
    return min([SnapshotExpiry().age, *(setting.snapshot_expiry.age for setting in settings)])
