"""The agent turn by turn: a fake source, fake workers, a clock that stands still."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from polynya.cli.format import to_json
from polynya.cluster.agent import (
    Agent,
    AgentEnd,
    AgentPace,
    AgentPorts,
    HeartbeatOutlet,
    StateFile,
)
from polynya.cluster.configuration import Acceptance
from polynya.cluster.control.reading import AGENT_STATE_FILE
from polynya.cluster.gossip.messages import Heartbeat, Sender
from polynya.cluster.gossip.records import read_record
from polynya.cluster.gossip.stream import StreamGossip
from polynya.cluster.messages import (
    ConfigurationRead,
    DrainRequested,
    HintReceived,
    JarsFetched,
    JobObserved,
    RunEnded,
)
from polynya.cluster.report import MetricsOutlet, is_healthy, summary
from polynya.cluster.report import Node as NodeName
from polynya.formats.batch import FilePart
from polynya.model.errors import ConfigError, DependencyError, PolynyaError
from polynya.observe.events import Event
from polynya.observe.metrics import Minute, emf_records
from polynya.store.configuration import ConfigurationSnapshot
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock, MemoryRecordStream
from tests.cluster.fakes import (
    BROKEN,
    GOOD,
    PROJECT,
    FakeWorkers,
    a_batch_of,
    a_look,
    snapshot,
    task,
)
from tests.projects import CLICKS

SCALING = Path(__file__).parents[2] / "constructs/polynya_constructs/cluster/scaling.py"
IAM_CLICKS = CLICKS.replace("security.protocol: SSL", "sasl.mechanism: AWS_MSK_IAM")
OUTAGE = DependencyError("POLYNYA-AWS-003", "no answer")


class Node:
    """An agent, its source, and what it did."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.source: ConfigurationSnapshot | PolynyaError = snapshot(GOOD)
        self.driver_lives = True
        self.start()

    def start(self) -> None:
        """Start the agent, as after a crash of the one before: nothing of it is left in memory."""
        self.clock = FakeClock()
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self.workers = FakeWorkers()
        self.workers.alive = lambda: self.driver_lives  # type: ignore[method-assign]
        self.told: list[Event] = []
        self.reports: list[Mapping[str, Any]] = []
        self.signs: list[str] = []
        self.fetched: list[set[str]] = []
        ports = AgentPorts(
            read=lambda: self.inbox.put(ConfigurationRead(self.source)),
            workers=lambda _project: self.workers,
            tell=self.told.append,
            reports=[self._take],
            alive=lambda: None,
            ready=lambda: self.signs.append("ready"),
            draining=lambda: self.signs.append("stopping"),
            draw=lambda: 0.0,
            fetch_jars=lambda project: self.fetched.append(set(project.stream_jars)),
        )
        name = NodeName("n1", None, datetime(2026, 1, 1, tzinfo=UTC))
        acceptance = Acceptance(self.work, None, self.work)
        pace = AgentPace(poll=10.0, report=10.0, drain=90.0)
        self.agent = Agent(name, acceptance, ports, clock=self.clock, inbox=self.inbox, pace=pace)

    def _take(self, report: Mapping[str, Any]) -> None:
        self.reports.append(report)

    def turns(self, seconds: float = 0.0) -> AgentEnd | None:
        """Let time pass, then turn twice: a reading begun in the first arrives in the second."""
        self.clock.advance(timedelta(seconds=seconds))
        return self.agent.turn(0) or self.agent.turn(0)

    def edits(self, change: Mapping[str, str]) -> None:
        self.source = snapshot(GOOD | change)
        self.turns(10.0)

    def running(self) -> list[str]:
        return sorted(run.job.name for run in self.workers.runs if not run.stopped)

    def end_all(self) -> None:
        for run in self.workers.runs:
            self.inbox.put(RunEnded(run.job, run.number))

    def types(self) -> list[str]:
        return [event.type for event in self.told]

    @property
    def report(self) -> Mapping[str, Any]:
        self.turns(10.0)
        return self.reports[-1]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    node.turns()
    node.turns()
    return node


def test_an_agent_is_ready_when_a_good_configuration_is_in_force(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.source = snapshot({"polynya.yml": BROKEN})
    node.turns()
    assert node.signs == []
    assert node.report["state"] == "starting"
    assert not is_healthy(node.report)

    node.edits({})

    assert node.signs == ["ready"]
    assert node.running() == ["shop.a", "shop.b"]
    assert is_healthy(node.report)


def test_an_edit_reaches_its_own_task_only(node: Node) -> None:
    node.edits({"tasks/a.yml": task("a") + "defaults: {history: true}\n", "tasks/c.yml": task("c")})

    assert node.running() == ["shop.b", "shop.c"]
    node.inbox.put(RunEnded(node.workers.runs[0].job, node.workers.runs[0].number))
    node.turns()
    assert node.running() == ["shop.a", "shop.b", "shop.c"]


def test_a_broken_edit_is_reported_with_its_place_and_stops_nothing(node: Node) -> None:
    node.edits({"tasks/a.yml": BROKEN, "tasks/new.yml": BROKEN})
    node.turns(10.0)

    assert node.running() == ["shop.a", "shop.b"]
    told = [event.as_json() for event in node.told if event.type == "configuration.broken"]
    assert [(one["code"], one["where"]) for one in told] == [
        ("POLYNYA-CFG-003", "tasks/a.yml:4:1"),
        ("POLYNYA-CFG-003", "tasks/new.yml:4:1"),
    ]
    assert node.report["configuration"]["kept"] == ["tasks/a.yml"]
    assert summary(node.report) == "2 running, 2 broken files"
    node.edits({})
    assert node.types().count("configuration.mended") == 2


def test_who_lands_is_told_all_tasks_and_that_some_are_unknown_while_a_file_is_broken(
    node: Node,
) -> None:
    def names() -> list[str] | None:
        known = node.workers.known
        return None if known is None else sorted(one.name for one in known)

    assert names() == ["a", "b"]
    node.edits({"tasks/new.yml": BROKEN})
    assert names() is None
    node.edits({"tasks/new.yml": task("new")})
    assert names() == ["a", "b", "new"]


def test_a_source_that_is_away_changes_nothing_and_is_told_once(node: Node) -> None:
    node.source = OUTAGE
    for _ in range(5):
        node.turns(10.0)

    assert node.running() == ["shop.a", "shop.b"]
    assert node.types().count("configuration.unread") == 1
    assert node.report["configuration"]["unread"]["code"] == "POLYNYA-AWS-003"
    node.source = snapshot(GOOD)
    node.turns(10.0)
    assert node.report["configuration"]["unread"] is None


def test_what_lies_in_the_bucket_and_is_not_used_is_told_once(node: Node) -> None:
    stray = ConfigError("POLYNYA-BKT-005", "no file of a project", where="current/notes.txt")
    node.source = replace(snapshot(GOOD), refused=(stray,))
    node.turns(10.0)
    node.turns(10.0)

    assert node.types().count("configuration.unused") == 1
    assert [one["where"] for one in node.report["configuration"]["unused"]] == [stray.where]
    assert is_healthy(node.report)


def test_a_start_without_the_source_takes_the_last_good_configuration(node: Node) -> None:
    node.edits({"tasks/a.yml": BROKEN})
    node.source = OUTAGE

    node.start()
    node.turns()

    assert node.signs == ["ready"]
    assert node.running() == ["shop.a", "shop.b"]


def test_a_start_with_a_broken_file_takes_its_last_good_content(node: Node) -> None:
    node.source = snapshot(GOOD | {"tasks/a.yml": BROKEN})

    node.start()
    node.turns()

    assert node.running() == ["shop.a", "shop.b"]


def test_a_drain_ends_when_the_last_step_does(node: Node) -> None:
    node.inbox.put(DrainRequested("SIGTERM"))
    assert node.turns() is None
    assert node.signs == ["ready", "stopping"]
    assert node.running() == []

    node.edits({"tasks/c.yml": task("c")})
    node.end_all()

    assert node.turns() is AgentEnd.DRAINED
    assert node.reports[-1]["state"] == "stopped"
    assert node.told[-1].as_json()["cut_off"] == ()


def test_a_drain_has_a_deadline_and_names_what_it_cuts_off(node: Node) -> None:
    node.inbox.put(DrainRequested("SIGTERM"))
    node.turns()
    assert node.turns(89.0) is None

    assert node.turns(1.0) is AgentEnd.CUT_OFF
    assert node.told[-1].as_json()["cut_off"] == ("shop.a", "shop.b")


@pytest.mark.parametrize("cause", ["target", "driver"])
def test_what_a_driver_cannot_survive_starts_the_process_anew(node: Node, cause: str) -> None:
    if cause == "target":
        node.edits({"polynya.yml": PROJECT.replace("warehouse}", "elsewhere}")})
    else:
        node.driver_lives = False
        first = node.workers.runs[0]
        node.inbox.put(RunEnded(first.job, first.number, OUTAGE))
    node.turns()
    node.end_all()

    assert node.turns() is AgentEnd.RESTART
    assert node.signs == ["ready"]


def test_the_first_landing_from_kafka_starts_the_process_again_with_its_jars(node: Node) -> None:
    node.edits({"tasks/clicks.yml": CLICKS})
    assert node.fetched == [{"kafka"}]
    # Until the jars are there everything goes on, other edits too.
    node.edits({"tasks/clicks.yml": CLICKS, "tasks/c.yml": task("c")})
    assert node.fetched == [{"kafka"}]
    assert {"shop.a", "shop.b", "shop.c"} <= set(node.running())

    node.inbox.put(JarsFetched())
    node.turns()
    node.end_all()

    assert node.turns() is AgentEnd.RESTART
    assert node.signs == ["ready"]


def test_jars_that_nobody_needs_any_more_restart_nothing(node: Node) -> None:
    node.edits({"tasks/clicks.yml": CLICKS})
    node.edits({})

    node.inbox.put(JarsFetched())
    node.turns()
    assert node.running() == ["shop.a", "shop.b"]

    node.edits({"tasks/clicks.yml": IAM_CLICKS})
    assert node.fetched == [{"kafka"}, {"kafka", "msk"}]


def test_an_agent_that_started_with_a_landing_has_its_jars(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.source = snapshot(GOOD | {"tasks/clicks.yml": IAM_CLICKS})
    node.turns()
    node.edits({"tasks/clicks.yml": CLICKS})

    assert node.signs == ["ready"]
    assert node.fetched == []


def test_who_is_told_to_end_does_not_start_anew(node: Node) -> None:
    node.edits({"polynya.yml": PROJECT.replace("warehouse}", "elsewhere}")})
    node.inbox.put(DrainRequested("SIGTERM"))
    node.end_all()

    assert node.turns() is AgentEnd.DRAINED


def test_metrics_have_the_names_that_the_cluster_scales_by(node: Node) -> None:
    written: list[Minute] = []
    metrics = MetricsOutlet(written.append)
    a = node.workers.runs[0]
    a.backlog.listed("shop.a", [FilePart("1", 4_000_000)], node.clock.monotonic())
    node.inbox.put(JobObserved(a.job, a_batch_of(7)))
    for health in (95, 87):
        node.inbox.put(JobObserved(a.job, a_look(f"shop.{health}", health)))

    report = dict(node.report)
    report["tasks"]["a"]["jobs"]["shop.a"]["fenced_total"] = 2
    for _ in range(2):
        metrics.put(report)
    metrics.put({**report, "at": report["at"] + timedelta(minutes=1)})

    minute, later = written  # the second one comes within the same minute
    of_cluster, of_node, of_a, _ = emf_records(minute)
    directive = of_cluster["_aws"]["CloudWatchMetrics"][0]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Polynya", [["Cluster"]])
    assert of_cluster["Cluster"] == "shop"
    assert (of_cluster["BacklogSeconds"], of_cluster["Records"]) == (4.0, 7)
    assert (of_cluster["OldestUnmergedAge"], of_cluster["Fenced"], of_a["Fenced"]) == (10.0, 2, 2)
    scaled_by = set(re.findall(r'runtime_metric\("(\w+)"', SCALING.read_text("utf-8")))
    # How busy a node is shows between two figures.
    assert scaled_by <= set(next(emf_records(later)))
    assert (of_node["Node"], of_node["BacklogSeconds"]) == ("n1", 4.0)
    assert (of_a["Task"], of_a["LagSeconds"], of_a["Failures"]) == ("a", 10.0, 0)
    assert (of_a["TableHealth"], of_a["MaintenanceBytes"]) == (87, 0)
    # Two tables were looked at.
    assert (of_a["TableFiles"], of_a["TableRowsNotOptimised"], of_a["TableSnapshots"]) == (2, 20, 2)


def test_a_report_is_in_the_work_folder(node: Node, tmp_path: Path) -> None:
    folder = LocalObjectStore(tmp_path / "state")

    assert StateFile(folder, to_json).put(node.report) is None

    assert b'"state":"running"' in folder.get(AGENT_STATE_FILE)


def test_the_heart_of_a_report_is_on_the_stream(node: Node) -> None:
    stream = MemoryRecordStream()
    gossip = telling(stream)

    outlet = HeartbeatOutlet(gossip, node.clock.monotonic)
    assert outlet.put(node.report) is None
    for _ in range(5):
        node.inbox.put(JobObserved(node.workers.runs[0].job, a_batch_of(7)))
    assert outlet.put(node.report) is None
    gossip.turn()

    ((key, data),) = stream.records
    told = read_record(data, "shop")
    assert isinstance(told, Heartbeat)
    assert (key, told.sender.node, told.state) == ("n1.1", "n1", "running")
    # Five steps of a second each in ten seconds.
    loads = {one.unit: one.load for one in told.units}
    assert loads == {("a", "shop.a"): 0.5, ("b", "shop.b"): 0.0}
    # A node that shares nothing reads nothing: it needs no right to.
    assert stream.reads == []


def test_a_stream_that_fails_is_only_told(node: Node) -> None:
    stream = MemoryRecordStream()
    stream.failure = OUTAGE
    gossip = telling(stream)
    outlet = HeartbeatOutlet(gossip, node.clock.monotonic)

    outlet.put(node.report)
    gossip.turn()

    assert outlet.put(node.report) == "workload stream: POLYNYA-AWS-003: no answer"
    assert node.running() == ["shop.a", "shop.b"]


def telling(stream: MemoryRecordStream) -> StreamGossip:
    me = Sender("shop", "n1", "n1.1")
    return StreamGossip(me, stream, clock=FakeClock(), draw=lambda: 0.0, wake=None)


def test_hints_of_objects_reach_the_workers_once_there_are_some(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.inbox.put(HintReceived(frozenset({"early/"})))
    node.turns()
    node.turns()

    node.inbox.put(HintReceived(frozenset({"users/"})))
    node.turns()

    assert node.workers.hinted == {"users/"}
