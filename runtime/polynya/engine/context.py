"""The context that all tasks of a process share: session, landing zone, clock, speeds, switches.

`TakeoverBackoff` is for a table that another process took over. That process may be a short command
(`resume`, `replay`, `reload`, `rebuild`), after which the run must continue, or a second run of the
same task. A commit of the former owner is refused in any case; the backoff only keeps two processes
from taking the table from each other again and again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from polynya.engine.backlog import Backlog, LandedReaders
from polynya.engine.maintenance_choice import BudgetUsed
from polynya.engine.policy import ApplyMode, StepSpeeds
from polynya.formats.begun import Begun
from polynya.formats.loads import LoadLimits
from polynya.lake.apply.apply import Applier
from polynya.lake.apply.fast import FastApplier
from polynya.lake.fold.shape import Shape
from polynya.lake.maintenance.actions import Readers
from polynya.lake.spark.api import SparkSession
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.fence import new_owner, owner_in_words
from polynya.model.config.aws import AwsAccess
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import ConflictError, DependencyError, PolynyaError, StaleStepError
from polynya.observe.events import EventSink, discard
from polynya.store.clock import Clock, SystemClock
from polynya.store.object_store import ObjectStore
from polynya.transform.named_columns import UnknownColumn

#: A table is taken back when the other process has not committed for this many seconds.
QUIET_SECONDS = 60.0
#: The same while a reload is under way: comparing a large table takes its time.
RELOAD_QUIET_SECONDS = 900.0


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
        """Whether all tables are this process's own, as far as it knows."""
        return not self._lost

    def lost(self, error: ConflictError, now: float) -> None:
        """Remember that the table of a refused step is somebody else's, if it is."""
        if isinstance(error, StaleStepError):
            return
        self._lost.setdefault(str(error.where), _LostTable(None, now))

    def wait_for_quiet(self, table: DatasetTable, now: float) -> None:
        """Raise ConflictError as long as the process that took a table over goes on with it."""
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
            raise ConflictError(
                "POLYNYA-LAKE-002",
                f"{owner_in_words(state.ownership.owner)} works on {name}; this one goes on when "
                f"nothing was committed there for {quiet:.0f} s",
                where=name,
                state="nothing is written by this process meanwhile; the other one goes on",
                fix="nothing, if a command such as `reload` or `replay` does it; "
                "end one of two processes that run the same task",
            )
        del self._lost[name]


@dataclass(slots=True)
class EngineContext:
    """Collaborators and switches of a run.

    Attributes:
        epoch: granted by coordination to the `owner` for this unit of work; None where nodes do not
            share work (docs/semantics.md section 11).
        said: the last report about each matter, so that a lasting one is reported once.
        truce: the takeover backoff.
        mirror: makes the views of a dataset for other engines, and returns the names of those that
            changed; None where there are none to make.
        backlog: receives what is waiting in the landing zone.
        loads: which full loads are large enough for tasks.
        apply_speeds: how fast applies were.
        upkeep: the part of the maintenance budget that is used.
        upkeep_seconds: what all maintenance may take of a run that ends, if the run was submitted
            for maintenance, too. None: little per dataset, because a user waits for the end.
        readers: the readers of the warehouse.
        at_unknown: receives columns that settings name and no record has; None: such a column stops
            its dataset.
        worked: a step on tables has succeeded, so there are tables.
        cause_of: finds the cause of a failure, once a step has `worked`.
        access: how the target reaches AWS.
        is_alive: whether Spark still answers; asked only after a failure.
        target: where it runs; None for engines of tests.
        landed_readers: which tables read landed batches, and how far.
        begun: notes which landed files are being read, and reports those that ended a process.
    """

    spark: SparkSession
    landing: ObjectStore
    clock: Clock = field(default_factory=SystemClock)
    sink: EventSink = discard
    applier: Applier = field(default_factory=FastApplier)
    apply_mode: ApplyMode = "policy"
    owner: str = field(default_factory=new_owner)
    epoch: int | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    said: dict[str, str] = field(default_factory=dict)
    truce: TakeoverBackoff = field(default_factory=TakeoverBackoff)
    mirror: Callable[[ResolvedDataset, Shape], list[str]] | None = None
    backlog: Backlog = field(default_factory=Backlog)
    loads: LoadLimits = field(default_factory=LoadLimits)
    apply_speeds: StepSpeeds = field(default_factory=StepSpeeds)
    upkeep: BudgetUsed = field(default_factory=BudgetUsed)
    upkeep_seconds: float | None = None
    readers: Readers = tuple
    at_unknown: Callable[[Sequence[UnknownColumn]], None] | None = None
    worked: bool = False
    cause_of: Callable[[PolynyaError], PolynyaError] | None = None
    access: AwsAccess = field(default_factory=AwsAccess)
    is_alive: Callable[[], bool] = lambda: True
    target: ResolvedTarget | None = None
    landed_readers: LandedReaders = field(default_factory=LandedReaders)
    begun: Begun = field(default_factory=Begun)

    def is_news(self, matter: str, text: str) -> bool:
        """Whether the last report about a matter was another one; `text` is the present one."""
        before, self.said[matter] = self.said.get(matter), text
        return text != before

    def explained(self, failure: PolynyaError, *, in_tables: bool = True) -> PolynyaError:
        """The failure of a step, or what explains it; `in_tables`: the step works on tables."""
        if not self.is_alive():
            return _driver_lost(failure)
        if self.cause_of is None or not self.worked or not in_tables:
            return failure
        return self.cause_of(failure)


def _driver_lost(failure: PolynyaError) -> DependencyError:
    lost = DependencyError(
        "POLYNYA-DEP-018",
        "the JVM of Spark has ended",
        why=f"the step met: {failure.__cause__ or failure}"[:300],
        state="as after the last completed commit; every commit is atomic",
        fix="run again; if the system ended it for lack of memory (its log says so), lower "
        "POLYNYA_DRIVER_MEMORY or stop what else runs there",
    )
    lost.__cause__ = failure
    return lost
