"""What every task of one process shares: the session, the landing zone, the clock, who we are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from polynya.engine.policy import ApplyMode
from polynya.lake.apply import Applier
from polynya.lake.apply_fast import FastApplier
from polynya.lake.dataset import new_owner
from polynya.model.project import Target
from polynya.observe.events import EventSink, discard
from polynya.store.clock import Clock, SystemClock
from polynya.store.object_store import ObjectStore


@dataclass(slots=True)
class EngineContext:
    """Collaborators and switches of a run."""

    spark: SparkSession
    landing: ObjectStore
    clock: Clock = field(default_factory=SystemClock)
    sink: EventSink = discard
    applier: Applier = field(default_factory=FastApplier)
    apply_mode: ApplyMode = "policy"
    owner: str = field(default_factory=new_owner)
    stop: threading.Event = field(default_factory=threading.Event)


def folder(project: Path, written: str) -> Path:
    """A folder of a target: relative to the project, or absolute."""
    return (project / written).resolve()


def landing_folder(project: Path, target: Target) -> Path:
    """Landing folder of a target, created when missing."""
    path = folder(project, target.landing)
    path.mkdir(parents=True, exist_ok=True)
    return path


StopCheck = Callable[[], bool]
