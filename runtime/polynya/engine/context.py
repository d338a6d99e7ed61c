"""The context that all tasks of a process share: session, limits, hooks, memory.

`TakeoverBackoff` is for a table that another process took over. That process may be a short command
(`resume`, `replay`, `reload`, `rebuild`), after which the run must continue, or a second run of the
same task. A commit of the former owner is refused in any case; the backoff only keeps two processes
from taking the table from each other again and again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from polynya.engine.backlog import Backlog, LandedReaders
from polynya.engine.listing import TaskListings
from polynya.engine.maintenance_choice import BudgetUsed
from polynya.engine.policy import ApplyMode, StepSpeeds
from polynya.formats.begun import Begun
from polynya.formats.loads import LoadLimits
from polynya.lake.apply.apply import Applier
from polynya.lake.apply.fast import FastApplier
from polynya.lake.fold.shape import Shape
from polynya.lake.maintenance.actions import Readers
from polynya.lake.read.catalog_views import OtherDialects
from polynya.lake.spark.api import SparkSession
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.fence import new_owner, owner_in_words
from polynya.model.config.aws import AwsAccess
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.lake import TABLE_TAKEN_OVER
from polynya.model.error_catalogue.machine import JVM_LOST
from polynya.model.errors import ConflictError, DependencyError, PolynyaError, StaleStepError
from polynya.observe.events import EventSink, discard
from polynya.store.clock import Clock, SystemClock
from polynya.store.object_store import ObjectStore
from polynya.transform.named_columns import UnknownColumn

#: A table is taken back when the other process has not committed for this many seconds.
QUIET_SECONDS = 60.0
#: The same while a reload is under way: comparing a large table takes its time.
RELOAD_QUIET_SECONDS = 900.0
#: Not a FencedError: the process waits, and does not end.
_TABLE_IN_USE: Final = TABLE_TAKEN_OVER.raising(ConflictError)

if TYPE_CHECKING:
    from polynya.query.dialects import EngineView


@dataclass(frozen=True, slots=True)
class _LostTable:
    """The newest snapshot of a table, and the monotonic time in seconds at which it was new."""

    snapshot: int | None
    at: float


class TakeoverBackoff:
    """The tables that other processes took over, by name. Times in monotonic seconds."""

    def __init__(self) -> None:
        self._lost: dict[str, _LostTable] = {}

    @property
    def is_empty(self) -> bool:
        """Whether this process has lost no table, as far as it knows."""
        return not self._lost

    def lost(self, error: ConflictError, now: float) -> None:
        """Remember that another process owns the table of a refused step, if one does."""
        if isinstance(error, StaleStepError):
            return
        self._lost.setdefault(str(error.where), _LostTable(None, now))

    def wait_for_quiet(self, table: DatasetTable, now: float) -> None:
        """Raise ConflictError while the process that took a table over still commits to it."""
        name, state = table.table.name, table.state
        seen = self._lost.get(name)
        if seen is None:
            return
        if seen.snapshot != state.snapshot:
            seen = self._lost[name] = _LostTable(state.snapshot, now)
        quiet = QUIET_SECONDS
        if state.copy.reloading is not None:
            quiet = RELOAD_QUIET_SECONDS
        if now - seen.at < quiet:
            raise _TABLE_IN_USE(
                f"{owner_in_words(state.ownership.owner)} works on {name}; this process continues "
                f"when nothing was committed there for {quiet:.0f} s",
                where=name,
                state="this process writes nothing meanwhile; the other one continues",
                fix="nothing, if a command such as `reload` or `replay` works on it; otherwise end "
                "one of the two processes that run this task",
            )
        del self._lost[name]


@dataclass(frozen=True, slots=True)
class EngineHooks:
    """What the engine calls outside of itself."""

    #: Makes the views of a dataset for other engines and returns the names of those that changed;
    #: None where there are no other engines.
    publish_views: Callable[[ResolvedDataset, Shape], list[str]] | None = None
    #: Makes the view of a query for other engines, in a schema, and tells whether it changed.
    publish_query_view: Callable[[EngineView, str], bool] | None = None
    #: Writes the views of the catalog for engines beside Spark; None where it holds no views.
    other_dialects: OtherDialects | None = None
    #: Receives columns that settings name and no record has. None: such a column stops its dataset.
    on_unknown_columns: Callable[[Sequence[UnknownColumn]], None] | None = None
    #: Finds the cause of a failure; called only after a step on tables has succeeded.
    cause_of: Callable[[PolynyaError], PolynyaError] | None = None
    #: Whether Spark still answers; called after a failure.
    is_alive: Callable[[], bool] = lambda: True
    #: Refuses to make a table whose schema another catalog has by now.
    may_create: Callable[[ResolvedDataset], None] = lambda _: None
    #: The readers of the warehouse, whose snapshots must not expire.
    readers: Readers = tuple
    #: Learns how each round of a unit ended, by its name and its task.
    on_round: Callable[[str, str, PolynyaError | None], None] = lambda *_: None


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """What a process remembers of earlier steps, shared by all its jobs."""

    #: The last report about each matter, so that a lasting state is reported once.
    last_reports: dict[str, str] = field(default_factory=dict)
    #: The tables that other processes took over.
    takeover_backoff: TakeoverBackoff = field(default_factory=TakeoverBackoff)
    #: How fast applies were.
    apply_speeds: StepSpeeds = field(default_factory=StepSpeeds)
    #: The part of the maintenance budget that is used.
    maintenance: BudgetUsed = field(default_factory=BudgetUsed)
    #: The newest lists of landing folders.
    listings: TaskListings = field(default_factory=TaskListings)


@dataclass(slots=True)
class EngineContext:
    """What the tasks of one run or job work with."""

    spark: SparkSession
    #: The landing zone.
    landing: ObjectStore
    clock: Clock = field(default_factory=SystemClock)
    #: Receives the events of all steps.
    sink: EventSink = discard
    applier: Applier = field(default_factory=FastApplier)
    #: Whether applies follow the policy of the task.
    apply_mode: ApplyMode = "policy"
    #: Name of this process in the tables that it owns.
    owner: str = field(default_factory=new_owner)
    #: Granted to the owner by coordination for this unit (docs/semantics.md section 11); None where
    #: nodes do not share work.
    epoch: int | None = None
    #: Set to end the run after the steps that are running.
    stop: threading.Event = field(default_factory=threading.Event)
    #: Where the project runs; None for engines of tests.
    target: ResolvedTarget | None = None
    #: How the target reaches AWS.
    access: AwsAccess = field(default_factory=AwsAccess)
    #: Receives what is waiting in the landing zone.
    backlog: Backlog = field(default_factory=Backlog)
    #: Which tables read landed batches, and how far.
    landed_readers: LandedReaders = field(default_factory=LandedReaders)
    #: Notes which landed files are being read, and reports those that ended a process.
    begun: Begun = field(default_factory=Begun)
    #: Which full loads are large enough for tasks.
    load_limits: LoadLimits = field(default_factory=LoadLimits)
    #: Seconds of maintenance in a run that ends and was submitted for maintenance, too. None: a few
    #: per dataset, because a user waits for the end.
    maintenance_seconds: float | None = None
    hooks: EngineHooks = field(default_factory=EngineHooks)
    memory: ProcessMemory = field(default_factory=ProcessMemory)
    #: A step on tables has succeeded, so there are tables.
    has_worked: bool = False

    def is_news(self, matter: str, text: str) -> bool:
        """Whether `text` differs from the last report about a matter; remembers it."""
        reports = self.memory.last_reports
        before, reports[matter] = reports.get(matter), text
        return text != before

    def explained(self, failure: PolynyaError, *, in_tables: bool = True) -> PolynyaError:
        """Return the cause of a failed step, or the failure itself.

        `in_tables`: the step works on tables.
        """
        if not self.hooks.is_alive():
            return _driver_lost(failure)
        if self.hooks.cause_of is None or not self.has_worked or not in_tables:
            return failure
        return self.hooks.cause_of(failure)


def _driver_lost(failure: PolynyaError) -> DependencyError:
    lost = JVM_LOST(why=f"the step failed: {failure.__cause__ or failure}"[:300])
    lost.__cause__ = failure
    return lost
