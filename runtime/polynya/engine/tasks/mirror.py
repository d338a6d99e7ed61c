"""A mirror as a unit of work, in a run with other tasks or alone. It needs no JVM."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

from pyiceberg.table import StaticTable, Table

from polynya.engine.backlog import MirrorFigures
from polynya.engine.context import EngineContext
from polynya.engine.errors import as_polynya
from polynya.engine.inventory import tables_of
from polynya.engine.ledger import ledger_dataset
from polynya.engine.unit import AFTER_TABLES, StepResult, TimeSlice, Unit
from polynya.lake.read.inspect import shape, states
from polynya.lake.spark.catalog import CATALOG, python_catalog
from polynya.lake.warehouse.catalogs import catalog_file
from polynya.lake.warehouse.check import entries_of, refuse_unusable
from polynya.lake.warehouse.readers import Readers
from polynya.lake.warehouse.tables import ListedTables, Tables
from polynya.mirror.plan import MirroredDataset, MirrorOrigin, MirrorPlan, plan
from polynya.mirror.rounds import MirrorRounds, MirrorSource
from polynya.mirror.state import SourceCommit, staleness
from polynya.mirror.statements import MirrorSession
from polynya.mirror.targets import session_of, statements_of
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.mirror import ConnectedMirror
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.mirrors import LOGIN_UNREADABLE
from polynya.model.errors import DependencyError, PolynyaError
from polynya.observe.engine import UnitFailed
from polynya.observe.events import EventSink
from polynya.store.clock import Clock
from polynya.store.places import store_at
from polynya.store.vault import vault

#: Seconds between two looks at the tables here, at the least and at the most.
_SHORTEST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 15.0


class MirrorWork:
    """A mirror at work: finds the newest commits and brings the target up to date."""

    def __init__(
        self,
        task: ConnectedMirror,
        target: ResolvedTarget,
        *,
        clock: Clock,
        sink: EventSink,
    ) -> None:
        self.task, self._target, self._clock = task, target, clock
        self._known: dict[str, MirrorSource] = {}
        self._is_complete = False
        self._last: Table | None = None
        self._origin = MirrorOrigin(task.project, target.name, task.name)
        self._rounds = MirrorRounds(
            task,
            self._origin,
            connect=self._session,
            store=store_at(target.warehouse, target.aws),
            readers=Readers.of(target, clock),
            clock=clock,
            random=random.SystemRandom().random,
            snapshot_of=self._commit_at,
            sink=sink,
        )

    def step(self, _: TimeSlice) -> StepResult:
        """Do one round."""
        sources = self.sources()
        result = self._rounds.step(sources, complete=self._is_complete)
        pause = min(self.task.refresh.at_most_every.total_seconds() / 4, _LONGEST_PAUSE)
        if result.wait is not None:
            pause = min(pause, result.wait.total_seconds())
        return StepResult(wait_seconds=max(pause, _SHORTEST_PAUSE), refused=result.error)

    def figures(self) -> dict[str, MirrorFigures]:
        """How far the target is for each dataset, by `schema.view`, as the last round left it.

        Empty for a target that finds new commits by itself.
        """
        if statements_of(self.task).finds_commits:
            return {}
        now, limit = self._clock.now(), self.task.refresh.stale_after
        found = {}
        for name, table in self._rounds.state.tables.items():
            behind = staleness(table, now)
            found[name] = MirrorFigures(
                behind_seconds=round(behind.total_seconds(), 3),
                stale=behind > limit or table.failures > 0,
                failures=table.failures,
                code=table.code,
                error=table.error,
            )
        return found

    def planned(self) -> MirrorPlan:
        """The statements that a round would carry out now. Changes nothing."""
        sources = self.sources()
        return self._rounds.planned(sources, complete=self._is_complete)

    def first_planned(self) -> MirrorPlan:
        """The statements that make everything where nothing is. Asks the catalog, never logs in."""
        shown = [one.shown for one in self.sources()]
        return plan(self.task, self._origin, shown, (), complete=self._is_complete)

    def sources(self) -> list[MirrorSource]:
        """The datasets that the mirror shows, with their newest commits."""
        refuse_unusable(self._target, CATALOG)
        found: dict[str, MirrorSource] = {}
        self._is_complete = True
        for entry in tables_of(self.task.source, _tables(self._target), self._is_wanted):
            if entry.is_ledger and entry.table is None:
                # Nobody knows which tables the task had found.
                self._is_complete = False
            if entry.table is not None and not entry.is_ledger:
                one = self._source(entry.dataset, entry.table)
                if one is not None:
                    found[entry.name] = one
        self._known = found
        return list(found.values())

    def _is_wanted(self, dataset: ResolvedDataset) -> bool:
        name, task = dataset.name, self.task
        if name == ledger_dataset(task.source).name:
            return True
        return any(fnmatchcase(name, glob) for glob in task.include) and not any(
            fnmatchcase(name, glob) for glob in task.exclude
        )

    def _source(self, dataset: ResolvedDataset, table: Table) -> MirrorSource | None:
        """The dataset as of its newest commit; None before it has columns."""
        known = self._known.get(dataset.relations.current)
        self._last = table
        if known is not None and known.commit.metadata == table.metadata_location:
            return known
        commit = _commit(table)
        columns = shape(table, dataset)
        if commit is None or not columns.columns:
            return None
        return MirrorSource(MirroredDataset(dataset, columns, table.format_version), commit)

    def _commit_at(self, place: str) -> SourceCommit | None:
        """The commit of a metadata file; None where it cannot be read any more."""
        properties = {} if self._last is None else dict(self._last.io.properties)
        try:
            return _commit(StaticTable.from_metadata(place, properties))
        except (OSError, ValueError):
            return None

    def _session(self) -> MirrorSession:
        region = self._target.aws.region
        return session_of(self.task, self._opened, region=region, clock=self._clock)

    def _opened(self, text: str) -> str:
        """A text of the connection with its secrets. Raises LOGIN_UNREADABLE."""
        try:
            return vault().open(text).text
        except DependencyError as error:
            why = f"{error.where}: {error.why or error.message}"
            raise LOGIN_UNREADABLE(where=self.task.name, why=why) from error


def _tables(target: ResolvedTarget) -> Tables:
    if catalog_file(target) is not None:
        return ListedTables(entries_of(target, CATALOG))
    return python_catalog(target)


def _commit(table: Table) -> SourceCommit | None:
    snapshot = table.metadata.current_snapshot()
    if snapshot is None:
        return None
    _, apply = states(table)
    return SourceCommit(
        metadata=table.metadata_location,
        snapshot=snapshot.snapshot_id,
        committed_at=datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
        applied_at=apply.applied_at,
    )


def mirror_unit(work: MirrorWork, context: EngineContext) -> Unit:
    """The unit of a mirror. In a run that ends it comes after the tasks that write tables."""
    task = work.task

    def step(given: TimeSlice) -> StepResult:
        try:
            return work.step(given)
        finally:
            limit = task.refresh.stale_after.total_seconds()
            now = context.clock.monotonic()
            context.backlog.mirrored(task.name, work.figures(), limit, now)

    return Unit(task.name, task.name, step, stage=AFTER_TABLES)


@dataclass(slots=True)
class StandaloneMirrors:
    """Several mirrors in turn, without Spark, until they are done or `stop` is set."""

    works: Sequence[MirrorWork]
    sink: EventSink
    stop: threading.Event
    failures: dict[str, PolynyaError] = field(default_factory=dict)

    def run(self, *, once: bool) -> Mapping[str, PolynyaError]:
        """Mirror; the errors of the last rounds, by task."""
        while not self.stop.is_set():
            pauses = [self._step(work, goes_on=not once) for work in self.works]
            if once:
                break
            self.stop.wait(min(pauses))
        return self.failures

    def _step(self, work: MirrorWork, *, goes_on: bool) -> float:
        """One round; seconds until the next one."""
        name = work.task.name
        failure: PolynyaError | None
        try:
            result = work.step(TimeSlice(at_once=not goes_on))
        except Exception as error:  # noqa: BLE001 - one mirror does not stop the others
            failure, pause = as_polynya(error), _LONGEST_PAUSE
        else:
            failure, pause = result.refused, result.wait_seconds or _SHORTEST_PAUSE
        if failure is None:
            self.failures.pop(name, None)
        elif str(self.failures.get(name)) != str(failure):
            self.failures[name] = failure
            self.sink(UnitFailed(subject=name, task=name, error=failure, goes_on=goes_on))
        return pause
