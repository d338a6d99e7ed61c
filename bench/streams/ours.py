"""The same by Polynya: a task that lands, and one that copies to an append-only table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once, units
from polynya.engine.unit import RunOutcome
from polynya.lake.spark.api import SparkSession
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.config.task import StorageTask
from polynya.model.config.task_kinds import Task
from polynya.observe.engine import BatchCopied
from polynya.observe.events import Event
from polynya.observe.streams import StreamLanded
from polynya.store.object_store import LocalObjectStore

#: The view.
TABLE = "events"


def landing(name: str, address: str, *topics: str, **settings: Any) -> StreamingLanding:
    """The task that lands topics, all in a table called `events`."""
    return StreamingLanding.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "streaming_landing",
            "name": name,
            "source": {"kafka": {"bootstrap_servers": address, "topics": topics}},
            "into": {"table": TABLE},
            **settings,
        }
    )


def storage(name: str, schema: str, folder: str, **settings: Any) -> StorageTask:
    """The task that copies what is landed in a folder, each message once."""
    document: dict[str, Any] = {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": name,
        "schema": schema,
        "landing": {"path": folder, "format": "stream"},
        "datasets": [{"name": TABLE, "mode": "append_only"}],
    }
    return StorageTask.model_validate(document | settings)


@dataclass
class Seen:
    """What a run said: the seconds of its steps, and what went wrong."""

    landed: list[StreamLanded] = field(default_factory=list)
    copied: list[BatchCopied] = field(default_factory=list)
    land_seconds: float = 0.0
    copy_seconds: float = 0.0

    def note(self, event: Event) -> None:
        """Take an event; several threads do."""
        if isinstance(event, StreamLanded):
            self.landed.append(event)
            self.land_seconds += event.seconds
        elif isinstance(event, BatchCopied):
            self.copied.append(event)
            self.copy_seconds += event.seconds


def context(spark: SparkSession, zone: Path, seen: Seen) -> EngineContext:
    """What a run shares."""
    return EngineContext(spark=spark, landing=LocalObjectStore(zone), sink=seen.note)


def run(engine: EngineContext, tasks: Sequence[Task]) -> float:
    """Land and copy all that there is, as `polynya run --once` does; the seconds it takes."""
    began = time.perf_counter()
    outcome: RunOutcome = run_once(engine, units(engine, tasks))
    if outcome.failures:
        raise SystemExit(f"failed: {outcome.failures}")
    return time.perf_counter() - began
