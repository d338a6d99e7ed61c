"""What every task of one process shares: the session, the landing zone, the clock, who we are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from polynya.engine.work.backlog import Backlog
from polynya.engine.work.policy import ApplyMode
from polynya.lake.apply.applier import Applier
from polynya.lake.apply.fast import FastApplier
from polynya.lake.fold.shape import Shape
from polynya.lake.spark.session import SparkSession
from polynya.lake.table.dataset import new_owner
from polynya.model.config.dataset import ResolvedDataset
from polynya.observe.events import EventSink, discard
from polynya.store.clock import Clock, SystemClock
from polynya.store.object_store import ObjectStore


@dataclass(frozen=True, slots=True)
class Sighting:
    """The newest snapshot of a table, and the monotonic time in seconds at which it was new."""

    snapshot: int | None
    at: float


@dataclass(slots=True)
class EngineContext:
    """Collaborators and switches of a run.

    `waiting` holds what was said of a unit or dataset last, so that it is said once: why it is not
    applied, what failed, what is ignored. `lost` are the tables that somebody else took over, by
    name: see `truce.py`. `mirror` makes the views of a dataset for other engines and returns the
    names of those that changed; None where there is nothing to make. `backlog` is told what waits
    in the landing zone.
    """

    spark: SparkSession
    landing: ObjectStore
    clock: Clock = field(default_factory=SystemClock)
    sink: EventSink = discard
    applier: Applier = field(default_factory=FastApplier)
    apply_mode: ApplyMode = "policy"
    owner: str = field(default_factory=new_owner)
    stop: threading.Event = field(default_factory=threading.Event)
    waiting: dict[str, str] = field(default_factory=dict)
    lost: dict[str, Sighting] = field(default_factory=dict)
    mirror: Callable[[ResolvedDataset, Shape], list[str]] | None = None
    backlog: Backlog = field(default_factory=Backlog)
