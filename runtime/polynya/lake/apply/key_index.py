"""The key indexes of this machine: when they are built, used and given up.

An index is built once the keys that were read without it have cost more than it would, and given up
when the space is needed (docs/adr/0015-key-indexes.md). A data file never changes, so an index is
never stale. Whatever is wrong with one costs only the time of reading keys, and is logged.

The folder belongs to a user, and several processes share it: a file in it may be deleted at any
time, also while it is used.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa

from polynya.lake.apply.build import IndexSource, least_bytes, sorted_keys
from polynya.lake.apply.key_index_file import (
    SCRATCH,
    SUFFIX,
    Identity,
    OpenedIndex,
    SortedRows,
    UnusableError,
    is_as_opened,
    is_private,
    open_index,
    write_index,
)
from polynya.lake.iceberg.files import DataFile
from polynya.lake.spark.cache import cache_root
from polynya.model.config.fields import parse_size
from polynya.model.error_catalogue.configuration import WRONG_VALUE

log = logging.getLogger(__name__)
VARIABLE: Final = "POLYNYA_KEY_INDEX"
#: Some 200 million keys of 64 bits.
DEFAULT: Final = "4GB"
#: What may wait: a process that ends finishes what it has begun, and that first.
MAX_BUILD_NS: Final = 5_000_000_000
_BUILD_NICENESS: Final = 10
#: An index that was used in these seconds is not given up for another one.
IN_USE_SECONDS: Final = 15 * 60
#: What a process that died has left.
ABANDONED_SECONDS: Final = 60 * 60
#: Of the disk, the share that stays free.
FREE_SHARE: Final = 0.1
#: Number of data files to remember: with an open index, or with what an index would have saved.
_REMEMBERED_FILES: Final = 5000
#: How often the last use of an index is noted for all processes.
_USE_NOTED_SECONDS: Final = 60
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds of one core, measured with 64-bit keys on local files (ADR 15).

    Only how they compare matters: text takes longer in each respect.

    Attributes:
        least_rows: of a file that is worth a decision; others are read in some milliseconds.
        read_ns: to read one key column of one row and to compare it.
        far_read_ns: the same over a network.
        build_ns: to read it, to sort it and to write it.
        step_ns: one step of the search for one key.
        look_up_ns: a look-up as such.
    """

    least_rows: int = 100_000
    read_ns: int = 30
    far_read_ns: int = 230
    build_ns: int = 150
    step_ns: int = 15
    look_up_ns: int = 1_500_000

    def build(self, rows: int, columns: int, *, far: bool) -> int:
        """What an index costs once."""
        further = self.far_read_ns - self.read_ns if far else 0
        return rows * columns * (self.build_ns + further)


COSTS: Final = Costs()


class IndexAction(StrEnum):
    """What happens to the keys of a file in an apply."""

    READ = "read"
    LOOK_UP = "look up"
    BUILD = "read, then build an index"


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What the decision is made of.

    Attributes:
        rows: of the file.
        read: of these, in row groups that may hold a touched key.
        touched: keys of the batch that may be in the file.
        columns: of the key.
        far: the file is read over a network.
        indexed: there is an index.
        missed_ns: what look-ups would have saved in the applies before this one.
    """

    rows: int
    read: int
    touched: int
    columns: int
    far: bool
    indexed: bool
    missed_ns: int


@dataclass(frozen=True, slots=True)
class IndexDecision:
    """What to do, why, and the nanoseconds that a look-up saves in this apply."""

    action: IndexAction
    reason: str
    saved_ns: int = 0


def decide(facts: IndexFacts, costs: Costs = COSTS) -> IndexDecision:
    """Build once look-ups would have saved what a build costs: never more than twice the best."""
    if facts.rows < costs.least_rows:
        return IndexDecision(IndexAction.READ, f"{facts.rows:,} rows are few")
    read = facts.read * facts.columns * (costs.far_read_ns if facts.far else costs.read_ns)
    steps = facts.touched * facts.columns * facts.rows.bit_length()
    saved = read - costs.look_up_ns - steps * costs.step_ns
    if saved <= 0:
        reason = f"{facts.touched:,} keys are found sooner by reading {facts.read:,}"
        return IndexDecision(IndexAction.READ, reason)
    if facts.indexed:
        return IndexDecision(
            IndexAction.LOOK_UP, f"{facts.touched:,} keys of {facts.rows:,}", saved
        )
    cost = costs.build(facts.rows, facts.columns, far=facts.far)
    missed = facts.missed_ns + saved
    if missed < cost:
        reason = f"an index would have saved {missed / cost:.0%} of what it costs"
        return IndexDecision(IndexAction.READ, reason, saved)
    return IndexDecision(IndexAction.BUILD, "an index would have saved what it costs", saved)


class Builds:
    """Jobs with a name, one after the other."""

    def __init__(self, most_ns: int = MAX_BUILD_NS) -> None:
        self._most_ns = most_ns
        self._pool = ThreadPoolExecutor(1, "key-index", initializer=_yield_to_others)
        self._waiting: dict[str, tuple[int, Future[None]]] = {}
        self._lock = threading.Lock()

    def offer(self, name: str, cost_ns: int, job: Callable[[], None]) -> bool:
        """Do a job later; False when it is there already, or too much is.

        A single job may cost more than what may wait.
        """
        with self._lock:
            waiting = sum(cost for cost, _ in self._waiting.values())
            if name in self._waiting or (waiting and waiting + cost_ns > self._most_ns):
                return False
            try:
                future = self._pool.submit(self._do, name, job)
            except RuntimeError:  # the process ends
                return False
            self._waiting[name] = (cost_ns, future)
            return True

    def wait(self) -> None:
        """Until all is done that was offered."""
        with self._lock:
            futures = [future for _, future in self._waiting.values()]
        for future in futures:
            future.result()

    def _do(self, name: str, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception:
            # A background thread has no caller to tell.
            log.exception("an index of keys was not built")
        finally:
            with self._lock:
                del self._waiting[name]


def _yield_to_others() -> None:
    """Let this thread work when the cores have nothing better to do, where threads have ranks."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _BUILD_NICENESS)


@dataclass(frozen=True, slots=True)
class IndexFileEntry:
    """A file: its name, its bytes, when it was used last, in seconds since 1970."""

    name: str
    size_bytes: int
    used: float


def to_remove(
    entries: Sequence[IndexFileEntry], needed: int, *, limit: int, free: int, disk: int, now: float
) -> list[str] | str:
    """Which files make room for `needed` bytes, the least recently used first, or why none do.

    All may take `limit` bytes. `free` bytes are left of a disk of `disk` bytes.
    """
    gone = [entry for entry in entries if _is_abandoned(entry, now)]
    kept = [entry for entry in entries if not _is_abandoned(entry, now)]
    over = max(
        sum(entry.size_bytes for entry in kept) + needed - limit,
        needed + int(disk * FREE_SHARE) - free - sum(entry.size_bytes for entry in gone),
    )
    idle = [entry for entry in kept if now - entry.used > IN_USE_SECONDS]
    for one in sorted(idle, key=lambda entry: entry.used):
        if over <= 0:
            break
        gone.append(one)
        over -= one.size_bytes
    if over > 0:
        return f"{over:,} bytes are missing for it: indexes in use, or the disk, are in the way"
    return [entry.name for entry in gone]


def _is_abandoned(entry: IndexFileEntry, now: float) -> bool:
    return entry.name.startswith(SCRATCH) and now - entry.used > ABANDONED_SECONDS


@dataclass(frozen=True, slots=True)
class Folder:
    """Where indexes lie, and the bytes that all of them may take."""

    path: Path
    limit: int

    def make_room(self, needed: int, now: float) -> str | None:
        """Make the folder, and room in it; None, or why there is none. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)
        if not is_private(self.path.stat()):
            return f"others can change what is in {self.path}"
        disk = shutil.disk_usage(self.path)
        removed = to_remove(
            self._entries(), needed, limit=self.limit, free=disk.free, disk=disk.total, now=now
        )
        if isinstance(removed, str):
            return removed
        for name in removed:
            self.remove(name)
        return None

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return (self.path / name).is_file()

    def use(self, name: str, now: float) -> None:
        """Note that a file was used, where all processes see it."""
        path = self.path / name
        with suppress(OSError):
            # The time of its change stays: it says that the content is the one that was checked.
            os.utime(path, ns=(int(now * 1e9), path.stat().st_mtime_ns))

    def remove(self, name: str) -> None:
        """Delete a file; another process may have done it."""
        with suppress(OSError):
            (self.path / name).unlink()

    def _entries(self) -> list[IndexFileEntry]:
        entries = []
        with os.scandir(self.path) as files:
            for file in files:
                if file.name.endswith(SUFFIX) or file.name.startswith(SCRATCH):
                    with suppress(FileNotFoundError):
                        status = file.stat(follow_symlinks=False)
                        used = max(status.st_atime, status.st_mtime)
                        entries.append(IndexFileEntry(file.name, status.st_size, used))
        return entries


def key_indexes(setting: str | None, folder: Path | None = None) -> KeyIndexes | None:
    """The indexes of this machine, None when they are switched off.

    `setting` is the size that all may take, `0` for none; None or nothing stands for `DEFAULT`.
    They are in the cache unless a `folder` is named. Raises ConfigError for an invalid size.
    """
    try:
        limit = parse_size(setting or DEFAULT)
    except ValueError as error:
        raise WRONG_VALUE(
            f"{VARIABLE}: {error}",
            where="the environment",
            state="nothing was started; no data was touched",
            fix=f"set {VARIABLE} to a size such as {DEFAULT}, to 0 for no indexes, or unset it",
        ) from error
    return KeyIndexes(Folder(folder or cache_root() / "keys", limit)) if limit else None


class KeyIndexes:
    """Indexes in a folder. Safe to use from several threads."""

    def __init__(
        self,
        folder: Folder,
        *,
        costs: Costs = COSTS,
        builds: Builds | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self.builds = builds or Builds()
        self._costs = costs
        self._now = now
        self._lock = threading.Lock()
        self._opened: OrderedDict[str, OpenedIndex] = OrderedDict()
        self._missed: OrderedDict[str, int] = OrderedDict()
        self._noted: dict[str, float] = {}

    def is_for(self, file: DataFile) -> bool:
        """Whether a data file is so large that `find` may find something."""
        return file.rows >= self._costs.least_rows

    def find(
        self, source: IndexSource, touched: SortedRows, *, read: int, likely: int, far: bool
    ) -> pa.Table | None:
        """Rows of a data file whose key is touched; None when its keys must be read.

        They have the columns of `touched.rows`, the position `POS` and what the source keeps.
        `read` rows would be read otherwise, and `likely` keys may be in the file.
        """
        identity = source.identity
        name = identity.name
        rows, columns = source.file.rows, len(source.keys)
        facts = IndexFacts(
            rows=rows,
            read=read,
            touched=likely,
            columns=columns,
            far=far,
            indexed=self.folder.has(name),
            missed_ns=self._missed.get(name, 0),
        )
        decision = decide(facts, self._costs)
        log.debug("keys of %s: %s: %s", identity.file, decision.action, decision.reason)
        if decision.action == IndexAction.LOOK_UP:
            return self._looked_up(identity, touched)
        if decision.action == IndexAction.BUILD:
            cost = self._costs.build(rows, columns, far=far)
            if self.builds.offer(name, cost, lambda: self.build(source)):
                self._missed.pop(name, None)
        elif decision.saved_ns:
            with self._lock:
                _put(self._missed, name, facts.missed_ns + decision.saved_ns)
        return None

    def build(self, source: IndexSource) -> None:
        """Build the index of a data file, if there is room; the log says why there is none."""
        identity = source.identity
        try:
            refusal = self.folder.make_room(least_bytes(source), self._now())
            outcome = refusal or sorted_keys(source)
            if isinstance(outcome, SortedRows):
                size = sum(key.nbytes for key in (*outcome.keys, outcome.rows))
                refusal = self.folder.make_room(size, self._now())
                if refusal is None:
                    write_index(self.folder.path, identity, outcome)
                outcome = refusal or "it is written"
        except (OSError, pa.ArrowException, MemoryError) as error:
            outcome = str(error)
        log.debug("key index of %s: %s", identity.file, outcome)
        del outcome
        pa.default_memory_pool().release_unused()
        self._forget_what_is_gone()

    def _looked_up(self, identity: Identity, touched: SortedRows) -> pa.Table | None:
        try:
            return self._open(identity).matches(touched)
        except UnusableError as error:
            log.debug("key index of %s %s: keys are read", identity.file, error)
            with self._lock:
                self._opened.pop(identity.name, None)
            self.folder.remove(identity.name)
            return None

    def _open(self, identity: Identity) -> SortedRows:
        name, folder = identity.name, self.folder.path
        opened = self._opened.get(name)
        if opened is None or not is_as_opened(folder, identity, opened):
            opened = open_index(folder, identity)
        now = self._now()
        with self._lock:
            _put(self._opened, name, opened)
            is_news = now - self._noted.get(name, 0) > _USE_NOTED_SECONDS
            if is_news:
                self._noted[name] = now
        if is_news:
            self.folder.use(name, now)
        return opened.index

    def _forget_what_is_gone(self) -> None:
        """Close files that were deleted, so that their bytes are free."""
        with self._lock:
            gone = [name for name in self._opened if not self.folder.has(name)]
            for name in gone:
                del self._opened[name]
            self._noted = {name: when for name, when in self._noted.items() if name in self._opened}


def _put(cache: OrderedDict[str, T], name: str, value: T) -> None:
    cache[name] = value
    cache.move_to_end(name)
    while len(cache) > _REMEMBERED_FILES:
        cache.popitem(last=False)
