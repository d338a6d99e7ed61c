"""`polynya cluster stop|start|roll|scale|commands` and the network agent that carries them out."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.cluster_group import wait_for
from polynya.cli.cluster_location import ClusterLocation
from polynya.cli.main import main
from polynya.cluster.network.agent import NetworkAgent, NetworkAgentSettings, make_network_agent
from polynya.model.errors import DependencyError
from polynya.observe.events import discard
from polynya.observe.metrics import Minute, emf_records
from polynya.store.clock import SystemClock
from polynya.store.jobs import Bounds, GroupFacts
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock
from tests.cluster.network.given import CLUSTER, Groups, Prices, Wire


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLYNYA_COORDINATION", str(tmp_path / "coordination"))
    monkeypatch.setenv("POLYNYA_CLUSTER", CLUSTER)
    monkeypatch.setattr("polynya.cli.cluster_group._POLL_SECONDS", 0.05)
    return tmp_path / "coordination"


@pytest.fixture
def groups() -> Groups:
    return Groups(Wire(), GroupFacts(Bounds(0, 4, 0)))


class Metrics(list[Minute]):
    def __call__(self, minute: Minute) -> None:
        self.append(minute)


def agent_at(place: Path, groups: Groups, told: list[str], metrics: Metrics) -> NetworkAgent:
    settings = NetworkAgentSettings("gateway", [CLUSTER], 0.02, metrics)
    place.mkdir(exist_ok=True)
    store, clock = LocalObjectStore(place), SystemClock()
    return make_network_agent(
        settings, store, groups, Prices(), clock=clock, notify=told.append, tell=discard
    )


@pytest.fixture
def network_agent(place: Path, groups: Groups) -> Iterator[tuple[list[str], Metrics]]:
    """A network agent at work on the same folder."""
    told, metrics, stop = list[str](), Metrics(), threading.Event()
    agent = agent_at(place, groups, told, metrics)

    def work() -> None:
        while not stop.is_set():
            agent.turn()
            groups.settle()
            stop.wait(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    yield told, metrics
    stop.set()
    thread.join()


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = main([*arguments, "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return code, [line for line in lines if line["type"] != "version"]


def test_commands_are_given_waited_for_and_listed(
    network_agent: tuple[list[str], Metrics], groups: Groups, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (start,) = call(capsys, "cluster", "start", "--wait")
    assert (code, start["state"], start["asked"]) == (0, "done", ["want"])
    code, (scale,) = call(capsys, "cluster", "scale", "3", "--wait", "--reason", "month end")
    assert (code, scale["outcome"], scale["reason"]) == (0, "3 nodes in service", "month end")
    code, (roll,) = call(capsys, "cluster", "roll", "--wait")
    assert (code, roll["outcome"]) == (0, "all nodes are replaced")
    code, (stop,) = call(capsys, "cluster", "stop", "--wait")
    assert (code, stop["asked"]) == (0, ["remember", "hold", "bound"])
    code, said = call(capsys, "cluster", "scale", "2", "--wait")
    assert (code, said[-1]["code"], said[-1]["why"]) == (
        1, "POLYNYA-AGT-061", "the cluster is stopped: start it first",
    )  # fmt: skip
    code, listed = call(capsys, "cluster", "commands")
    assert [(one["command"], one["state"]) for one in listed] == [
        ("start", "done"), ("scale", "done"), ("roll", "done"), ("stop", "done"),
        ("scale", "refused"),
    ]  # fmt: skip
    told, metrics = network_agent
    assert told.count("READY=1") == 1
    assert "WATCHDOG=1" in told
    (record,) = emf_records(metrics[0])
    assert (record["NetworkAgentConnected"], record["Cluster"]) == (1, CLUSTER)


def test_without_a_network_agent_a_command_waits_and_people_are_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "stop"]) == 0
    said = capsys.readouterr()

    assert ": stop: pending, by " in said.out
    assert "no network agent ever served this cluster" in said.err


def test_nobody_takes_the_command_in_time(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (given,) = call(capsys, "cluster", "roll")
    store = LocalObjectStore(place)
    clock = FakeClock(SystemClock().now())
    monkeypatch.setattr("polynya.cli.cluster_group._POLL_SECONDS", 600.0)
    from polynya.cli.options import GlobalOptions
    from polynya.cli.output import make_output

    with pytest.raises(DependencyError) as caught:
        here = ClusterLocation(str(place), CLUSTER, store)
        wait_for(make_output(GlobalOptions()), here, given["id"], clock=clock)

    assert caught.value.code == "POLYNYA-AGT-062"


def test_an_agent_that_ends_says_so(place: Path, groups: Groups) -> None:
    stop = threading.Event()
    agent = agent_at(place, groups, [], Metrics())
    agent.turn()
    stop.set()
    agent.run(stop)

    sign = json.loads((place / CLUSTER / "network-agent").read_text())
    assert (sign["state"], sign["reason"]) == ("disconnected", "it was told to end")


def test_hopeless_calls_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "cluster", "scale", "-1")[0] == 2
    assert call(capsys, "cluster", "scale", "many")[0] == 2
    assert call(capsys, "network-agent")[0] == 2
    assert call(capsys, "network-agent", "--cluster", "x", "--poll-seconds", "0")[0] == 2
