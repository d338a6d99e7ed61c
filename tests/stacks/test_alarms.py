"""Alarms of sources from their cause to the alarm of a synthesized template.

The figures are those of the supervisor and of the agent's report; CloudWatch is simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from polynya.cluster.jobs import AgentJob
from polynya.cluster.report import AgentFacts, MetricsOutlet, Node, node_report
from polynya.cluster.unit import JobKey
from polynya.engine.backlog import Backlog, MirrorFigures
from polynya.model.config.connected import ConnectedCapture
from polynya.observe.engine import BatchCopied
from polynya.observe.metrics import Minute, emf_records
from tests.engine.tasks.test_capture_supervisor import (
    LAG,
    LANDED,
    REFUSED,
    STREAMING,
    FakeProcess,
    Zone,
    failed,
)
from tests.engine.tasks.test_capture_unit import TASK
from tests.stacks.house_rules import resources
from tests.stacks.scaling.cloudwatch import BEGIN, Metrics
from tests.stacks.scaling.policies import value_of_alarm
from tests.stacks.synthesis import Assembly

pytestmark = pytest.mark.synth

CLUSTER = "polynya-borrowed-quick"


class CapturingNode:
    """A node with a capture; its figures reach the alarms of its cluster each minute."""

    def __init__(self, assembly: Assembly) -> None:
        self.zone, self.metrics, self.minute = Zone(), Metrics(), 0
        self.job = AgentJob(
            JobKey("shop_db", "shop_db"), ConnectedCapture.model_validate(TASK), "1", running="1"
        )
        self.mirrored: dict[str, MirrorFigures] = {}
        self._outlet = MetricsOutlet(self._take)
        template = assembly.templates["borrowed/Cluster-quick"]
        self._alarms = {
            alarm["AlarmName"].removeprefix(f"{CLUSTER}-"): alarm
            for alarm in resources(template, "AWS::CloudWatch::Alarm").values()
            if "AlarmName" in alarm and alarm.get("Namespace") == "Polynya"
        }

    def on(self) -> set[str]:
        """The alarms of runtime metrics that are on."""
        return {
            name
            for name, alarm in self._alarms.items()
            if value_of_alarm(alarm, self.metrics, self.minute) is not None
        }

    def passes(self, minutes: int, each: Callable[[], object] = lambda: None) -> None:
        """The node works for so long, and publishes its figures once a minute."""
        for _ in range(minutes):
            each()
            for _ in range(30):
                self.zone.look()
                self.zone.clock.sleep(2)
            self.minute += 1
            self._publish()

    def _publish(self) -> None:
        now = self.zone.clock.monotonic()
        self.job.backlog.captured("shop_db", self.zone.supervisor.figures(), now)
        at = BEGIN + timedelta(minutes=self.minute)
        backlog: Backlog = self.job.backlog
        facts = AgentFacts(
            node=Node("n1", CLUSTER, BEGIN),
            at=at,
            state="running",
            in_force=None,
            unread=None,
            unused=(),
            jobs=[self.job],
            backlogs=[self.job.waiting(now)],
            streams=[backlog.streams(now)],
            captures=[backlog.captures(now)],
            mirrors=[self.mirrored],
        )
        assert self._outlet.put(node_report(facts)) is None

    def _take(self, minute: Minute) -> None:
        for line in emf_records(minute):
            self.metrics.take(line)


@pytest.fixture
def node(assembly: Assembly) -> CapturingNode:
    """A node whose capture follows its database."""
    node = CapturingNode(assembly)
    node.zone.coming = [FakeProcess([[STREAMING, LANDED, lag()], *[[lag()]] * 3000], ends=1)]
    return node


def lag(**fields: Any) -> Mapping[str, Any]:
    """A capture that keeps up, but for these fields."""
    return {**LAG, "bytes": 100, "seconds": 0.5, "log_bytes": 10, **fields}


def test_a_capture_that_keeps_up_sets_off_nothing(node: CapturingNode) -> None:
    node.passes(20)

    assert node.on() == set()


def test_a_database_that_stops_sets_off_that_it_fails_and_then_that_it_is_behind(
    node: CapturingNode,
) -> None:
    node.zone.coming[0].says = node.zone.coming[0].says[:1]
    node.zone.coming += [FakeProcess([[failed(REFUSED)]], ends=1) for _ in range(400)]

    node.passes(7)
    after_minutes = node.on()
    node.passes(15)

    assert after_minutes == {"CaptureFailing"}
    assert node.on() == {"CaptureFailing", "CaptureBehind"}

    node.zone.coming = [FakeProcess([[STREAMING, lag()], *[[lag()]] * 3000], ends=1)]
    # Pauses between two tries grow to half an hour.
    node.passes(40)
    assert node.on() == set()


def test_a_slot_whose_log_nears_its_limit_sets_off_the_alarm(node: CapturingNode) -> None:
    says = node.zone.coming[0].says
    says[100:] = [[lag(log_bytes=81)]] * 400

    node.passes(8)

    assert node.on() == {"SlotInDanger"}


def test_a_table_that_its_capture_gives_up_is_suspended(node: CapturingNode) -> None:
    tables = {"type": "tables", "tables": {"public.a": {"state": "suspended"}}}
    node.zone.coming[0].says[5] = [tables]

    node.passes(8)

    assert node.on() == {"Suspended"}


def test_rejected_records_set_off_the_alarm_until_none_came_for_a_quarter_of_an_hour(
    node: CapturingNode,
) -> None:
    copied = BatchCopied(
        subject="shop.users", rows_in=9, rows_out=8, rows_filtered=0, rows_quarantined=1,
        files=1, seconds=0.1,
    )  # fmt: skip
    node.passes(3)
    node.job.observed(copied, BEGIN)
    node.passes(1)
    at_once = node.on()
    node.passes(10)
    still = node.on()
    node.passes(10)

    assert (at_once, still, node.on()) == ({"Quarantine"}, {"Quarantine"}, set())


def test_records_that_wait_in_a_stream_set_off_the_alarm(node: CapturingNode) -> None:
    def waits() -> None:
        now = node.zone.clock.monotonic()
        node.job.backlog.beyond("in/clicks", 1000, now, behind_seconds=16 * 60.0)

    node.passes(7, waits)

    assert node.on() == {"StreamBehind"}


def test_a_mirror_sets_off_the_alarm_while_it_is_stale(node: CapturingNode) -> None:
    node.mirrored["shop.users"] = MirrorFigures(behind_seconds=30.0)
    node.passes(7)
    behind = node.on()
    node.mirrored["shop.users"] = MirrorFigures(behind_seconds=900.0, stale=True)
    node.passes(7)
    stale = node.on()
    node.mirrored["shop.users"] = MirrorFigures()
    node.passes(2)

    assert (behind, stale, node.on()) == (set(), {"MirrorStale"}, set())
