"""The key indexes of this machine: used, built and given up as they pay (ADR 15).

A data file never changes, so an index is never stale. Whatever is wrong with one costs the time of
reading keys, and a line of the log says what it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeVar

import pyarrow as pa

from polynya.lake.apply.local.keys.build import Source, least_bytes, sorted_keys
from polynya.lake.apply.local.keys.builds import Builds
from polynya.lake.apply.local.keys.folder import Folder
from polynya.lake.apply.local.keys.index_file import (
    Identity,
    Opened,
    UnusableError,
    is_as_opened,
    open_index,
    write_index,
)
from polynya.lake.apply.local.keys.rule import COSTS, Action, Costs, Facts, decide
from polynya.lake.apply.local.keys.sorted_rows import SortedRows
from polynya.lake.iceberg.files import DataFile

T = TypeVar("T")
log = logging.getLogger(__name__)

#: Data files whose index is open, or of which it is known what one would have saved.
_KNOWN: Final = 5000
#: How often the last use of an index is noted for all processes.
_NOTED_SECONDS: Final = 60


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
        self._opened: OrderedDict[str, Opened] = OrderedDict()
        self._missed: OrderedDict[str, int] = OrderedDict()
        self._noted: dict[str, float] = {}

    def is_for(self, file: DataFile) -> bool:
        """Whether a data file is so large that `find` may find something."""
        return file.rows >= self._costs.least_rows

    def find(
        self, source: Source, touched: SortedRows, *, read: int, likely: int, far: bool
    ) -> pa.Table | None:
        """Rows of a data file whose key is touched; None when its keys are to be read.

        They have the columns of `touched.rows`, the position `POS` and what the source keeps.
        `read` rows would be read otherwise, and `likely` keys may be in the file.
        """
        identity = source.identity
        name = identity.name
        rows, columns = source.file.rows, len(source.keys)
        facts = Facts(
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
        if decision.action == Action.LOOK_UP:
            return self._looked_up(identity, touched)
        if decision.action == Action.BUILD:
            cost = self._costs.build(rows, columns, far=far)
            if self.builds.offer(name, cost, lambda: self.build(source)):
                self._missed.pop(name, None)
        elif decision.saved_ns:
            with self._lock:
                _put(self._missed, name, facts.missed_ns + decision.saved_ns)
        return None

    def build(self, source: Source) -> None:
        """Build the index of a data file, if there is room; the log says why there is none."""
        identity = source.identity
        try:
            refusal = self.folder.make_room(least_bytes(source), self._now())
            found = refusal or sorted_keys(source)
            if isinstance(found, SortedRows):
                size = sum(one.nbytes for one in (*found.keys, found.rows))
                refusal = self.folder.make_room(size, self._now())
                if refusal is None:
                    write_index(self.folder.path, identity, found)
                found = refusal or "it is written"
        except (OSError, pa.ArrowException, MemoryError) as error:
            found = str(error)
        log.debug("key index of %s: %s", identity.file, found)
        del found
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
            is_news = now - self._noted.get(name, 0) > _NOTED_SECONDS
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


def _put(known: OrderedDict[str, T], name: str, value: T) -> None:
    known[name] = value
    known.move_to_end(name)
    while len(known) > _KNOWN:
        known.popitem(last=False)
