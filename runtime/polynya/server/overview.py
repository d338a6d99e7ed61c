"""What the API knows of all datasets: kept in memory, and looked at again in the background.

A request reads no table, so that a list of thousands of datasets answers at once. Each round looks
at every table; one that cannot be read is unknown, with its error, and hides no other.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from polynya.engine.inventory import ProjectTable, tables_of
from polynya.engine.maintenance_status import maintenance_status
from polynya.engine.policy import PendingFacts, wait_for_apply
from polynya.lake.read.commits import OwnerSteps, TableCommit, commits, steps_by_owner
from polynya.lake.read.committed import CommittedTable, committed_tables, type_text
from polynya.lake.read.inspect import DatasetStatus, states
from polynya.lake.read.inspect import status as status_of
from polynya.model.config.access import ViewKind
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask, resolved
from polynya.model.errors import PolynyaError
from polynya.model.formats import rules_of
from polynya.model.loader import LoadedProject
from polynya.server.health import HealthPart, HealthWord, parts_of, why_unknown, worst
from polynya.store.clock import Clock

log = logging.getLogger(__name__)

#: Seconds between two rounds, and the share of the time that rounds take at most.
_PAUSE: Final = 5.0
_MOST_SHARE: Final = 0.2
#: Seconds without a look after which figures are late, unless three rounds take longer.
_LATE: Final = 60.0
#: So many of the newest commits, and of the last owners, are kept of each table.
MOST_COMMITS: Final = 20
_OWNERS: Final = 5
#: How long a table without a new commit is not read again. Settings may change without one.
_KEPT: Final = timedelta(minutes=1)
#: Seconds that a look computes before another thread has its turn. With the 5 ms of Python the
#: slowest twentieth of requests took twice as long (`docs/performance.md`).
_TURN: Final = 0.0005
#: Most results that an overview keeps, such as the datasets of a list in their order.
_MOST_RESULTS: Final = 64

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class DatasetOverview:
    """One dataset as of a round.

    `status` is None before the first copy, and where the table cannot be read. `commits` are the
    newest ones, `owners` the processes that made them, both oldest first. `views` are `schema.view`
    by their kinds.
    """

    name: str
    task: str
    health: HealthWord
    parts: tuple[HealthPart, ...] = ()
    status: DatasetStatus | None = None
    maintenance: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    commits: tuple[TableCommit, ...] = ()
    owners: tuple[OwnerSteps, ...] = ()
    views: Mapping[ViewKind, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """All that `polynya status --json` says of it."""
        return {} if self.status is None else {**asdict(self.status), **self.maintenance}


@dataclass(frozen=True, slots=True)
class Overview:
    """All datasets as of `at`, by name; `error` is what keeps a task's tables from being listed."""

    at: datetime | None
    project: LoadedProject | None
    datasets: Mapping[str, DatasetOverview]
    errors: tuple[PolynyaError, ...] = ()
    _results: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` gives for this overview: made by the first request that asks for it.

        A result must depend on nothing but the overview and `key`, so on no person.
        """
        if key not in self._results and len(self._results) >= _MOST_RESULTS:
            self._results.clear()
        try:
            found: Made = self._results[key]
        except KeyError:
            found = self._results[key] = make()
        return found


def views_of(dataset: ResolvedDataset) -> dict[ViewKind, str]:
    """The live views of a dataset that has a table."""
    relations = dataset.relations
    views: dict[ViewKind, str] = {"current": relations.view, "changes": relations.changes_view}
    if dataset.kept.history:
        views["history"] = relations.history_view
    return {kind: f"{relations.schema}.{view}" for kind, view in views.items()}


@dataclass(frozen=True, slots=True)
class _Seen:
    """A dataset as of `at`; a commit gives its table another metadata file than `place`."""

    place: str
    at: datetime
    found: DatasetOverview

    def now(self, now: datetime) -> DatasetOverview:
        """The same with the ages that it has now."""
        status, passed = self.found.status, (now - self.at).total_seconds()
        if status is None:
            return self.found
        fresh, pending = status.freshness_seconds, status.pending_age_seconds
        older = replace(
            status,
            freshness_seconds=None if fresh is None else fresh + passed,
            pending_age_seconds=None if pending is None else pending + passed,
        )
        return replace(self.found, status=older)


class OverviewKeeper:
    """Keeps the overview of a project, by a thread of its own from `start` to `stop`.

    `pause` is the time between two looks, in seconds.
    """

    def __init__(
        self, load: Callable[[], LoadedProject], clock: Clock, pause: float = _PAUSE
    ) -> None:
        self._load, self._clock, self._pause = load, clock, pause
        self._stop = threading.Event()
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="overview", daemon=True)
        self._newest = Overview(None, None, {})
        self._seen: dict[str, _Seen] = {}
        #: Since when the thread looks, its last look in monotonic seconds, and the time of a round.
        self._since = clock.now()
        self._began = self._looked = clock.monotonic()
        self._interval = pause
        self._started = False

    def start(self) -> None:
        """Look from now on."""
        self._since = self._clock.now()
        self._began = self._looked = self._clock.monotonic()
        self._started = True
        # A request needs several turns.
        sys.setswitchinterval(_TURN)
        self._thread.start()

    def stop(self) -> None:
        """End after the table that is looked at."""
        self._stop.set()

    def newest(self, wait_seconds: float = 10.0) -> Overview:
        """The newest overview; waits for the first one, up to so long after the start."""
        if self._started:
            waited = self._clock.monotonic() - self._began
            self._first.wait(max(0.0, wait_seconds - waited))
        elif self._newest.at is None:
            self.look()
        return self._newest

    def late_since(self) -> datetime | None:
        """Since when nothing was looked at although it is time; None while looks are in time."""
        passed = self._clock.monotonic() - self._looked
        if not self._started or passed < max(_LATE, 3 * self._interval):
            return None
        return self._newest.at or self._since

    def known(self) -> Overview | None:
        """The newest overview without waiting; None before the first one."""
        return self._newest if self._newest.at is not None else None

    def look(self) -> None:
        """Look at everything now."""
        errors: list[PolynyaError] = []
        found: dict[str, DatasetOverview] = {}
        project = None
        try:
            project = self._load()
            errors += project.errors
            # One look at the catalog tells which tables have a new commit: only these are read.
            tables = committed_tables(project.target)
            for task in project.tasks:
                try:
                    for entry in tables_of(task, tables):
                        if self._stop.is_set():
                            return
                        if not entry.is_ledger:
                            found[entry.name] = self._facts(entry)
                except Exception as error:  # noqa: BLE001 - one task must not hide the others
                    errors.append(why_unknown(error))
                    found |= {one.name: one for one in self._unknown(task, error)}
        except Exception as error:  # noqa: BLE001 - the next round may find it repaired
            errors.append(why_unknown(error))
            for task in () if project is None else project.tasks:
                found |= {one.name: one for one in self._unknown(task, error)}
        self._newest = Overview(self._clock.now(), project, found, tuple(errors))

    def _unknown(self, task: StorageTask, error: Exception) -> Iterator[DatasetOverview]:
        """The datasets of a task that cannot be looked at, as far as they are known."""
        known = {one.name for one in self._newest.datasets.values() if one.task == task.name}
        if not rules_of(task.landing.format).finds_tables:
            known |= {resolved(task, one).relations.current for one in task.datasets}
        for name in sorted(known):
            part = self._unreadable(name, error)
            yield DatasetOverview(name, task.name, HealthWord.UNKNOWN, (part,))

    def _unreadable(self, name: str, error: Exception) -> HealthPart:
        """Why a table is unknown, and since when: the first look that could not read it."""
        before = self._newest.datasets.get(name)
        since = next((one.since for one in before.parts if one.since), None) if before else None
        found = why_unknown(error)
        place = f"{found.where}: " if found.where else ""
        says = f"{place}{found.message} ({found.code})"
        since = since or self._clock.now().isoformat()
        return HealthPart("table", HealthWord.UNKNOWN, says, found.fix, since)

    def _facts(self, entry: ProjectTable[CommittedTable]) -> DatasetOverview:
        name, task, table = entry.name, entry.task.name, entry.table
        if table is None:
            part = HealthPart("copy", HealthWord.NEW, "nothing was copied yet")
            return DatasetOverview(name, task, HealthWord.NEW, (part,), views={"current": name})
        place, now = table.metadata_location, self._clock.now()
        seen = self._seen.get(name)
        if seen is not None and seen.place == place and now - seen.at < _KEPT:
            return seen.now(now)
        try:
            status = status_of(table, entry.dataset, now)
            maintenance = maintenance_status(table, entry.dataset, now)
            pending = PendingFacts(
                status.pending_rows, status.pending_bytes, status.pending_files, status.current_rows
            )
            waits = wait_for_apply(pending, entry.task.apply)
            parts = tuple(parts_of(status, waits, maintenance.health.score))
            columns = {
                column: type_text(known["type"])
                for column, known in table.columns.items()
                if not column.startswith("hdr__")
            }
            committed = commits(table.metadata)
            found = DatasetOverview(
                name,
                task,
                worst(parts),
                parts,
                status,
                maintenance.as_json(),
                columns,
                # A captured table says its keys itself.
                tuple(states(table)[0].columns.keys) or entry.dataset.events.keys,
                tuple(committed[-MOST_COMMITS:]),
                tuple(steps_by_owner(committed, status.owner)[-_OWNERS:]),
                views_of(entry.dataset),
            )
        except Exception as error:  # noqa: BLE001 - one table must not hide the others
            part = self._unreadable(name, error)
            return DatasetOverview(name, task, HealthWord.UNKNOWN, (part,))
        self._seen[name] = _Seen(place, now, found)
        return found

    def _keep(self) -> None:
        while not self._stop.is_set():
            began = self._clock.monotonic()
            try:
                self.look()
                self._looked = self._clock.monotonic()
            except Exception:
                # Pages say since when; the next round may find it repaired.
                log.exception("the look at all tables failed")
            self._first.set()
            took = self._clock.monotonic() - began
            pause = max(self._pause, took * (1 / _MOST_SHARE - 1))
            self._interval = took + pause
            self._stop.wait(pause)
