"""A table that reads a stream of Kinesis itself, over shards in memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import pytest

from polynya.streams.kinesis.source import Kinesis
from polynya.testing.fakes import MemoryShards
from tests.engine.tasks.direct_table import DirectTable, PowerCut, killed, message
from tests.engine.tasks.test_direct import APPEND
from tests.lab.lab import Lab
from tests.streams.kafka.fake import FakeKafka


@dataclass
class KinesisTable(DirectTable):
    """Its stream has one shard, `s0`."""

    def __post_init__(self) -> None:
        self.shards = MemoryShards(self.lab.clock)
        self.shards.make("clicks")
        reads = self.task.reads
        assert reads.source.kinesis is not None
        source = Kinesis(self.shards, self.lab.clock, reads, reads.source.kinesis)
        self.source = cast("FakeKafka", source)

    @property
    def written(self) -> dict[str, Any]:
        return {"kinesis": {"streams": ["clicks"]}}


@pytest.mark.parametrize(
    ("at", "before"),
    [
        (2, True),
        (3, False),
        *(
            pytest.param(at, before, marks=pytest.mark.slow)
            for at, before in ((2, False), (3, True), (4, True), (4, False))
        ),
    ],
)
def test_a_kill_at_any_commit_loses_and_doubles_nothing(lab: Lab, at: int, before: bool) -> None:
    facts = KinesisTable(lab, landing={"batch": {"max_records": 2}}, transform=dict(APPEND))
    facts.shards.put("clicks", "s0", message(0), message(1), b"no json")
    facts.shards.replace("clicks", ["s0"], ["s1", "s2"])
    facts.shards.put("clicks", "s1", message(2))
    facts.shards.put("clicks", "s2", message(3))
    with killed(at, before=before), pytest.raises(PowerCut):
        facts.work()
    facts.run()

    assert facts.look.current("id") == [(number,) for number in range(4)]
    number = "00000000000000000003"
    assert facts.look.rejected() == [(f"kinesis:clicks/s0/{number}", 0, "bad_json")]
    assert facts.look.totals() == {"in": 5, "out": 4, "filtered": 0, "quarantined": 1}
    shards = facts.position.end["streams"]["clicks"]["shards"]
    assert sorted(shards) == ["s0", "s1", "s2"]
    assert shards["s0"]["ended"]


def test_what_the_stream_deleted_is_told_and_counted(lab: Lab) -> None:
    facts = KinesisTable(lab, transform=dict(APPEND))
    facts.shards.put("clicks", "s0", message(0))
    facts.run()
    facts.shards.put("clicks", "s0", message(1))
    lab.clock.advance(timedelta(days=2))
    facts.shards.trim("clicks")
    facts.shards.put("clicks", "s0", message(2))
    facts.run()

    assert facts.look.current("id") == [(0,), (2,)]
    assert facts.position.totals["lost"] == 1
