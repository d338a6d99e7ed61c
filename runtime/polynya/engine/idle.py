"""Whether a run that ends has anything to do, found without a JVM.

Starting Spark takes seconds, and a run that is started every minute mostly finds nothing. So the
run first looks at its tables and at the landing zone through the small readers of `lake/read`, in
the way in which its units would. `why_at_work` is the decision about one dataset: from facts to the
reason to start Spark, None for nothing to do. Whatever is unclear is such a reason, too.

What the units of an idle run would report is in `IdleRun`: events, rounds, and the backlog.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from polynya.engine.inventory import tables_of
from polynya.engine.ledger import ledger_dataset
from polynya.engine.maintenance_choice import BudgetUsed, choose
from polynya.engine.maintenance_status import committed_facts, health_event
from polynya.engine.policy import ApplyMode, PendingFacts, decide
from polynya.formats.extracts import landed_extracts
from polynya.formats.files import LandedFiles, unrouted
from polynya.formats.registry import format_of
from polynya.lake.fold.live_views import (
    DEFINITION,
    TRANSLATED_BY,
    definition_of,
    dialects_version,
    spark_views,
)
from polynya.lake.iceberg.partitions import Spec
from polynya.lake.iceberg.wanted import SortOrder
from polynya.lake.maintenance.health import BUILT_NAMES, asks_for_layout, rule_of
from polynya.lake.read.committed import CommittedTable, CommittedTables, LiveFile, listed_tables
from polynya.lake.read.inspect import load, states
from polynya.lake.spark.catalog import CATALOG
from polynya.lake.table.shaping import shape_of
from polynya.lake.table.state import ApplyState, CopyState
from polynya.lake.warehouse.moved import FOLDER as MOVED
from polynya.lake.warehouse.moved import refuse_moved
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.settings import ApplyPolicy
from polynya.model.config.sources import datasets_of_members
from polynya.model.config.stream_landing import DirectTask
from polynya.model.config.target import ResolvedTarget
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_kinds import Task
from polynya.model.formats import rules_of
from polynya.model.headers import Partition
from polynya.model.loader import LoadedProject
from polynya.model.names import quote_path
from polynya.model.types import DataType, parse_type
from polynya.observe.engine import ApplySkipped
from polynya.observe.events import Event
from polynya.observe.latency import DatasetBacklog
from polynya.store.object_store import ObjectInfo
from polynya.store.places import store_at


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleFacts:
    """What a run that ends would meet at one dataset.

    Attributes:
        held: why its own state asks for a run: a suspension, a reload, files to catch up with.
        unread: landed files that are not read to their end.
        odd: landed files that a run would report: they changed, or wait for another one.
        pending: what waits for an apply.
        is_ahead: the columns of the table are others than its state knows.
        old_view: a view that is not as it would be made today.
        awaits_layout: the table gets another layout when it is taken over.
        maintenance: the action of maintenance that pays now.
    """

    held: str | None = None
    unread: int = 0
    odd: int = 0
    pending: PendingFacts = field(default_factory=lambda: PendingFacts(0, 0, 0, 0))
    is_ahead: bool = False
    old_view: str | None = None
    awaits_layout: bool = False
    maintenance: str | None = None


def why_at_work(facts: IdleFacts, policy: ApplyPolicy, mode: ApplyMode) -> str | None:
    """Why a run has something to do for a dataset; None: nothing."""
    decision = decide(facts.pending, policy, mode)
    reasons = [
        facts.held,
        f"{facts.unread:,} of its landed files are unread" if facts.unread else None,
        f"{facts.odd:,} of its landed files changed or wait for others" if facts.odd else None,
        decision.reason if decision.apply else None,
        "its columns are others than its state knows" if facts.is_ahead else None,
        f"its view {facts.old_view} is not as it would be made today" if facts.old_view else None,
        "its table gets another layout" if facts.awaits_layout else None,
        f"{facts.maintenance} is due" if facts.maintenance else None,
    ]
    return next((reason for reason in reasons if reason is not None), None)


@dataclass(slots=True)
class IdleRun:
    """What a run with nothing to do reports.

    `rounds` are the units that ended, each with its task, `units` the number of those that a run
    begins with. `backlog` is what waits of each dataset.
    """

    units: int = 0
    events: list[Event] = field(default_factory=list)
    rounds: list[tuple[str, str]] = field(default_factory=list)
    backlog: dict[str, DatasetBacklog] = field(default_factory=dict)


class AtWorkError(Exception):
    """A run has something to do, or that is unclear; the message is the reason."""


def idle_run(
    project: LoadedProject, tasks: Sequence[Task], mode: ApplyMode, now: Callable[[], datetime]
) -> IdleRun:
    """What a run of some tasks reports that has nothing to do. Raises AtWorkError for another one.

    It reads tables and lists the landing zone as that run would, and changes nothing.
    """
    target = project.target
    storage = _of_files(project, tasks)
    _refuse_moved(target, project.internal_schemas)
    tables = listed_tables(target)
    if tables is None:
        raise AtWorkError("nothing was run yet")
    look = _Look(target, tables, mode, now)
    for task in storage:
        look.at(task)
    return look.run


def _of_files(project: LoadedProject, tasks: Sequence[Task]) -> list[StorageTask]:
    """The tasks, which all read landed files or tables, of a project whose tables can be listed."""
    target = project.target
    if project.errors:
        raise AtWorkError("files of the project are broken")
    if target.on_glue or target.rest is not None or target.catalog_properties:
        raise AtWorkError("the catalog of the target is asked by Spark")
    if target.cluster is not None:
        raise AtWorkError("the target has a cluster of Spark")
    chosen = []
    for task in tasks:
        if not isinstance(task, StorageTask) or isinstance(task, DirectTask):
            raise AtWorkError(f"task {task.name} reads more than files and tables")
        chosen.append(task)
    return chosen


def _refuse_moved(target: ResolvedTarget, schemas: set[str]) -> None:
    if isinstance(target.warehouse, Path) and not (target.warehouse / MOVED).is_dir():
        return
    refuse_moved(store_at(target.warehouse, target.aws), target, schemas)


@dataclass(slots=True)
class _Look:
    """A look at the tables of a run, task by task. All raise AtWorkError."""

    target: ResolvedTarget
    tables: CommittedTables
    mode: ApplyMode
    now: Callable[[], datetime]
    run: IdleRun = field(default_factory=IdleRun)

    def at(self, task: StorageTask) -> None:
        """Look at what a task would do."""
        if isinstance(task, DerivedTask):
            self._at_derived(task)
            return
        store = store_at(self.target.landing, self.target.aws)
        landed = LandedFiles(store.list(task.landing.path))
        rules = rules_of(task.landing.format)
        if not rules.finds_tables:
            self._at_declared(task, landed)
        elif rules.shares_files:
            self._at_shared(task, landed)
        else:
            self._at_folders(task, landed)

    def _at_declared(self, task: StorageTask, landed: LandedFiles) -> None:
        for dataset in (resolved(task, declared) for declared in task.datasets):
            self.run.units += 1
            self.run.rounds.append((dataset.relations.current, task.name))
            self._at_dataset(task, dataset, partial(_in_task, task, dataset, landed))

    def _at_shared(self, task: StorageTask, landed: LandedFiles) -> None:
        """Look at a task whose tables share its files: the ledger has read them."""
        ledger = self._ledger(task)
        membership = ledger.membership
        routes, errors = datasets_of_members(task, membership.members)
        if errors or membership.refused or not membership.settled:
            raise AtWorkError(f"task {task.name} has tables that it could not copy")
        read = format_of(task).unread(landed, ledger.position.files, ledger_dataset(task))
        if read.files or read.changed:
            raise AtWorkError(f"task {task.name} has files that are unread or have changed")
        self.run.units += 1
        self.run.rounds.append((task.name, task.name))
        for source in sorted(routes):
            self._at_dataset(task, routes[source], _in_ledger)

    def _at_folders(self, task: StorageTask, landed: LandedFiles) -> None:
        """Look at a task whose tables have folders."""
        ledger = self._ledger(task)
        members, folders = ledger.membership.members, format_of(task).tables(landed)
        routes, errors = datasets_of_members(task, members)
        stray = unrouted(folders, ledger.position.files).files
        if errors or stray or set(folders.tables) - set(routes):
            raise AtWorkError(f"task {task.name} has files of tables that it does not know")
        self.run.units += 1
        self.run.rounds.append((task.name, task.name))
        for source in sorted(routes):
            dataset = routes[source]
            if folders.waiting.get(source):
                raise AtWorkError(f"{dataset.relations.current}: files wait for others")
            self.run.rounds.append((dataset.relations.current, task.name))
            own = folders.tables.get(source, ())
            self._at_dataset(task, dataset, partial(_in_task, task, dataset, own))

    def _at_derived(self, task: DerivedTask) -> None:
        """Look at a transform: its tables show what its queries return, or not."""
        if task.query_views or task.registered:
            raise AtWorkError(f"Spark tells the columns that task {task.name} reads or shows")
        # Start-up time: the analysis of queries.
        from polynya.engine.derivation import committed_input, why_outdated

        there = [
            (entry.dataset, committed_input(entry.dataset, entry.table))
            for read in task.reads
            for entry in tables_of(read, self.tables)
            if not entry.is_ledger
        ]

        def outdated(dataset: ResolvedDataset, copy: CopyState) -> tuple[int, int]:
            why = why_outdated(task.query_of(dataset.name), dataset, copy.derivation, there)
            if why is not None:
                raise AtWorkError(f"{dataset.relations.current}: {why}")
            return 0, 0

        for dataset in (resolved(task, declared) for declared in task.datasets):
            self.run.units += 1
            self.run.rounds.append((dataset.relations.current, task.name))
            self._at_dataset(task, dataset, partial(outdated, dataset))

    def _ledger(self, task: StorageTask) -> CopyState:
        table = load(self.tables, ledger_dataset(task))
        if table is None:
            raise AtWorkError(f"task {task.name} was not run yet")
        copy, _ = states(table)
        held = _held(ledger_dataset(task), copy, self.now())
        if held is not None:
            raise AtWorkError(f"{task.name}: {held}")
        return copy

    def _at_dataset(
        self,
        task: StorageTask,
        dataset: ResolvedDataset,
        files: Callable[[CopyState], tuple[int, int]],
    ) -> None:
        """Look at one dataset; `files` counts those that are unread and those to report."""
        name, now = dataset.relations.current, self.now()
        table = load(self.tables, dataset)
        if table is None or table.snapshot is None:
            raise AtWorkError(f"{name}: nothing was copied to it yet")
        copy, apply = states(table)
        unread, odd = files(copy)
        shape = committed_facts(table, dataset, now)
        left = BudgetUsed().left(dataset.maintenance.budget, 0.0, cheap_only=True)
        choice = choose(
            shape, dataset.maintenance, rule=rule_of(dataset), left=left, built=BUILT_NAMES
        )
        maintained = dataset.maintenance.enabled
        pending = _pending(table, copy, apply, now)
        facts = IdleFacts(
            held=_held(dataset, copy, now),
            unread=unread,
            odd=odd,
            pending=pending,
            is_ahead=_is_ahead(table, dataset, copy),
            old_view=self._old_view(dataset, copy, has_pending=bool(pending.rows)),
            awaits_layout=_awaits_layout(table, dataset, copy),
            maintenance=choice.taken.action if maintained and choice.taken else None,
        )
        reason = why_at_work(facts, task.apply, self.mode)
        if reason is not None:
            raise AtWorkError(f"{name}: {reason}")
        if not isinstance(task, DerivedTask):
            self.run.backlog[name] = DatasetBacklog(pending_rows=pending.rows)
            waits = decide(pending, task.apply, self.mode).reason
            self.run.events.append(ApplySkipped(subject=name, reason=waits))
        if maintained:
            self.run.events.append(health_event(dataset, shape, choice))
            self.run.rounds.append((f"{name} (maintenance)", task.name))

    def _old_view(
        self, dataset: ResolvedDataset, copy: CopyState, *, has_pending: bool
    ) -> str | None:
        """The first view that a run would make again."""
        shape = shape_of(dataset, copy, _columns(copy), tuple(copy.columns.keys))
        if not set(shape.data) - shape.hidden:
            return None
        relations = dataset.relations
        table = quote_path(CATALOG, relations.internal_schema, relations.internal_table)
        texts = spark_views(dataset, shape, table)
        settled = texts if has_pending else spark_views(dataset, shape, table, settled=True)
        for view in texts:
            made = self.tables.view(f"{relations.schema}.{view}")
            if made is None or made.sql not in {texts[view], settled[view]}:
                return view
            wanted = {DEFINITION: definition_of(shape, made.sql), TRANSLATED_BY: dialects_version()}
            if not wanted.items() <= made.properties.items():
                return view
        return None


def _in_task(
    task: StorageTask, dataset: ResolvedDataset, landed: Sequence[ObjectInfo], copy: CopyState
) -> tuple[int, int]:
    """How many landed files of a dataset are unread, and how many a run would report."""
    done, extracts = copy.position.files, dataset.landing.extracts
    if extracts is None:
        read = format_of(task).unread(landed, done, dataset)
        return len(read.files), len(read.changed)
    found = landed_extracts(landed, dataset, extracts, done, copy.position.last_extract)
    return len(found.due) + len(found.refused), len(found.changed) + len(found.waiting)


def _in_ledger(copy: CopyState) -> tuple[int, int]:
    """The same of a table whose files the ledger has read: all, or it was never fed."""
    never_fed = copy.membership.task is None and not copy.books.totals
    return int(never_fed), 0


def _held(dataset: ResolvedDataset, copy: CopyState, now: datetime) -> str | None:
    """Why the state of a dataset asks for a run."""
    if copy.decisions.suspended is not None:
        return "it is suspended"
    if copy.reloading is not None:
        return "a reload of it has begun"
    if copy.position.behind:
        return "it has to catch up with the files of its task"
    if copy.position.stream is not None:
        return "it was filled from a stream"
    due = copy.reload_due(dataset)
    return "its reload is due" if due is not None and due <= now else None


def _columns(copy: CopyState) -> dict[str, DataType]:
    return {name: parse_type(text) for name, text in copy.columns.schema.items()}


def _is_ahead(table: CommittedTable, dataset: ResolvedDataset, copy: CopyState) -> bool:
    """Whether the columns of a table are not those of its last commit, or lack some of its state.

    A process that was killed leaves such a table.
    """
    assert table.snapshot is not None, "there is a commit"
    shown = shape_of(dataset, copy, _columns(copy), tuple(copy.columns.keys)).data
    known = table.snapshot.get("schema-id", table.metadata["current-schema-id"])
    return known != table.metadata["current-schema-id"] or not set(shown) <= table.columns.keys()


def _awaits_layout(table: CommittedTable, dataset: ResolvedDataset, copy: CopyState) -> bool:
    if not asks_for_layout(dataset.layout, copy.settings):
        return False
    # Start-up time: few datasets have one.
    from polynya.lake.iceberg.layout import lacks

    metadata = table.metadata
    spec = _entry(metadata["partition-specs"], "spec-id", metadata["default-spec-id"])
    order = _entry(metadata["sort-orders"], "order-id", metadata["default-sort-order-id"])
    return lacks(
        list(table.columns.values()),
        Spec.of(json.dumps(spec)),
        SortOrder.of(order),
        dataset.layout,
        _columns(copy),
    )


def _entry(
    entries: Iterable[Mapping[str, object]], name: str, number: object
) -> Mapping[str, object]:
    return next(entry for entry in entries if entry[name] == number)


def _pending(
    table: CommittedTable, copy: CopyState, apply: ApplyState, now: datetime
) -> PendingFacts:
    """The pending changes of a dataset, as `engine/pending.py` sees them."""
    pending = table.data_files({Partition.CHANGES})
    if not pending:
        return PendingFacts(0, 0, 0, 0)
    current = table.data_files({Partition.CURRENT})
    since = copy.pending_since(apply)
    return PendingFacts(
        rows=_sum(pending, lambda file: file.rows),
        size_bytes=_sum(pending, lambda file: file.size_bytes),
        files=len(pending),
        current_rows=_sum(current, lambda file: file.rows),
        current_bytes=_sum(current, lambda file: file.size_bytes),
        age=max(now - since, timedelta()) if since else None,
    )


def _sum(files: Iterable[LiveFile], figure: Callable[[LiveFile], int]) -> int:
    return sum(map(figure, files))
