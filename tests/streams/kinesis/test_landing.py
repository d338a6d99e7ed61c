"""A task lands shards in one object with their positions, whatever is killed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
import pytest

from polynya.engine.context import EngineContext
from polynya.engine.runner import RunOutcome, run_once
from polynya.engine.tasks.streams import LandingTask
from polynya.engine.unit import Unit
from polynya.formats.landed import opened_batch
from polynya.lake.spark.api import SparkSession
from polynya.model.config.stream_landing import StreamingLanding
from polynya.observe.events import Event
from polynya.observe.streams import StreamLanded
from polynya.store.object_store import ObjectStore
from polynya.store.shards import Shards
from polynya.streams.kinesis.source import Kinesis
from polynya.streams.landed_status import stream_statuses
from polynya.streams.landing import LandedLog
from polynya.testing.fakes import FakeClock, MemoryObjectStore, MemoryShards
from tests.streams.killing import Killed, KilledError
from tests.streams.kinesis.given import NOW

Kill = Callable[[Any], Any]


@dataclass
class Zone:
    """A landing zone in memory, and runs of a task that lands a stream there."""

    landing: MemoryObjectStore = field(default_factory=MemoryObjectStore)
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOW))
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shards = MemoryShards(self.clock)
        self.shards.make("clicks", shards=2)

    @property
    def task(self) -> StreamingLanding:
        return StreamingLanding.model_validate(
            {
                "apiVersion": "polynya/v1",
                "kind": "streaming_landing",
                "name": "in",
                "source": {"kinesis": {"streams": ["clicks"]}},
                "batch": {"max_records": 3},
                # So that the order of calls is always the same.
                "readers": 1,
            }
        )

    def run(self, kill: Kill = lambda store: store) -> RunOutcome:
        """As `polynya run --once`, in a process of its own."""
        task = self.task
        landing = cast("ObjectStore", kill(self.landing))
        context = EngineContext(
            cast("SparkSession", None), landing, self.clock, sink=self.events.append
        )
        assert task.source.kinesis is not None
        shards = cast("Shards", kill(self.shards))
        source = Kinesis(shards, self.clock, task, task.source.kinesis)
        unit = Unit("in", "in", LandingTask(context, task, source).step, lands=True)
        return run_once(context, [unit])

    def run_killed(self, at: int, *, after: bool) -> bool:
        """Run until a step; whether it came to that."""
        steps = [0]
        with suppress(KilledError):
            self.run(lambda store: Killed(store, steps, at, done=after))
        return steps[0] >= at

    def landed(self) -> list[tuple[str, str]]:
        """Shard and message of each record."""
        log = LandedLog(self.landing, "in", "clicks")
        tables = [opened_batch(self.landing.open(log.path(one)))[1].read() for one in log.numbers()]
        rows = pa.concat_tables(tables).to_pylist() if tables else []
        return [(row["hdr__kinesis_shard"], row["value"].decode()) for row in rows]


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_before_or_after_any_step_loses_and_doubles_nothing(after: bool) -> None:
    at, killed = 0, True
    while killed:
        at += 1
        zone = Zone()
        zone.shards.put("clicks", "s0", *"abcd")
        zone.shards.put("clicks", "s1", *"vwx")
        zone.shards.replace("clicks", ["s0"], ["s2", "s3"])
        zone.shards.put("clicks", "s2", *"ef")
        zone.shards.put("clicks", "s3", "g")

        killed = zone.run_killed(at, after=after)
        zone.shards.put("clicks", "s1", "y")
        zone.run()

        landed = zone.landed()
        of = {shard: "".join(value for one, value in landed if one == shard) for shard, _ in landed}
        assert of == {"s0": "abcd", "s1": "vwxy", "s2": "ef", "s3": "g"}, at
        shards = [shard for shard, _ in landed]
        last_of_parent = max(n for n, one in enumerate(shards) if one == "s0")
        assert min(shards.index("s2"), shards.index("s3")) > last_of_parent, at
        newest = LandedLog(zone.landing, "in", "clicks").newest()
        assert newest is not None
        assert (newest.totals.records, newest.totals.lost) == (11, 0)

    assert at > 15, "many steps were killed"


def test_of_two_processes_that_land_one_stream_each_record_comes_once() -> None:
    zone = Zone()
    zone.shards.put("clicks", "s0", *"abcdef")

    class Rival:
        """Before each of our first puts another process lands what there is."""

        left = 2

        def __getattr__(self, name: str) -> Any:
            return getattr(zone.landing, name)

        def put_if_absent(self, path: str, data: bytes) -> bool:
            if self.left:
                self.left -= 1
                zone.run()
            return zone.landing.put_if_absent(path, data)

    rival = Rival()
    zone.run(lambda store: rival if store is zone.landing else store)

    assert "".join(value for _, value in zone.landed()) == "abcdef"


def test_what_is_told_of_a_batch_is_behind_in_shards() -> None:
    zone = Zone()
    zone.shards.put("clicks", "s0", *"abcd")
    zone.shards.put("clicks", "s1", *"vwxy")
    steps = [0]
    with suppress(KilledError):
        # The process ends when its second batch is put.
        zone.run(lambda store: Killed(store, steps, 2, done=False) if _is_zone(store) else store)
    [status] = stream_statuses(zone.landing, zone.task, NOW)

    assert status.behind_records is None
    assert status.behind_shards
    [told] = [event for event in zone.events if isinstance(event, StreamLanded)]
    assert told.unit == "shards"


def _is_zone(store: object) -> bool:
    return isinstance(store, MemoryObjectStore)
