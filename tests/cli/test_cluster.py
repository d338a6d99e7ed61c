"""`polynya cluster` and `polynya task`, on the objects of a cluster in a folder."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.main import main
from polynya.cluster.control.reading import read_cluster
from polynya.cluster.control.requests import FinishedRequest, UnitRequests
from polynya.cluster.coordination import store
from polynya.cluster.coordination.documents import LeaderLease, NodeLease, NodePlan, UnitOwnership
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.unit import JobKey
from polynya.store.clock import SystemClock
from polynya.store.object_store import LocalObjectStore

X, Y = JobKey("sales", "shop.orders"), JobKey("sales", "shop.items")
SINCE = re.compile(r" since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two nodes that renewed their leases a moment ago, with a unit each; the first leads."""
    place = tmp_path / "coordination"
    place.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLYNYA_COORDINATION", str(place))
    monkeypatch.setenv("POLYNYA_CLUSTER", "main")
    register, now = (
        DocumentStore(LocalObjectStore(place), "main", random.Random(1)),
        datetime.now(UTC),
    )
    for node, unit in (("n1", X), ("n2", Y)):
        me = f"{node}.aa"
        lease = NodeLease(
            node=node, incarnation=me, state="ready", since=now, renewed_at=now, version="9.1"
        )
        owner = UnitOwnership(owner=me, node=node, epoch=3, since=now, reason="nobody had it")
        plan = NodePlan(term=1, number=1, units=((unit.task, unit.name, "balance"),))
        assert register.write(store.node_path(me), lease, None)
        assert register.write(store.unit_path(unit), owner, None)
        assert register.write(store.plan_path(me), plan, None)
    leader = LeaderLease(node="n1", incarnation="n1.aa", term=1)
    assert register.write(store.LEADER, leader, None)
    return place


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = main([*arguments, "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return code, [line for line in lines if line["type"] != "version"]


def test_status_nodes_and_tasks_of_a_cluster(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (status,) = call(capsys, "cluster", "status")
    assert code == 0
    assert (status["status"], status["reason"]) == ("Running", "2 nodes, 2 units")
    assert (status["leader"], status["nodes"], status["units"]) == (
        "n1", {"ready": 2}, {"owned": 2},
    )  # fmt: skip
    _, nodes = call(capsys, "cluster", "nodes")
    assert [(one["node"], one["state"], one["units"]) for one in nodes] == [
        ("n1", "ready", 1),
        ("n2", "ready", 1),
    ]
    _, units = call(capsys, "cluster", "tasks", "sales")
    assert [(one["name"], one["node"], one["epoch"]) for one in units] == [
        ("shop.items", "n2", 3),
        ("shop.orders", "n1", 3),
    ]
    _, clusters = call(capsys, "cluster", "list")
    assert [(one["cluster"], one["status"]) for one in clusters] == [("main", "Running")]


def test_people_read_the_same(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "status"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("main: Running since ")
    assert "  units          2 owned\n" in shown
    assert main(["cluster", "tasks"]) == 0
    (since,) = {one.group() for one in SINCE.finditer(shown)}
    owned = f"sales/shop.orders: owned on n1{since}, epoch 3: nobody had it\n"
    assert owned in capsys.readouterr().out
    assert main(["cluster", "list"]) == 0
    assert f"main: Running{since}: 2 nodes, 2 units\n" in capsys.readouterr().out
    assert main(["cluster", "nodes"]) == 0
    assert f"n2: ready, 1 units, Spot,{since}, polynya 9.1\n" in capsys.readouterr().out


def test_what_the_leader_heard_is_shown_with_its_reason(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ill = {"task": "sales", "name": "shop.items", "epoch": 3, "state": "suspended", "reason": "no"}
    heard = {"incarnation": "n1.aa", "at": datetime.now(UTC).isoformat(), "units": [ill]}
    (place / "main" / "heard").write_text(json.dumps({"v": 1, **heard, "stream": "AGT-042: gone"}))

    code, (status,) = call(capsys, "cluster", "status")

    assert (code, status["status"]) == (1, "Running")
    stream, unit = status["troubles"]
    assert stream.startswith("workload stream: AGT-042: gone; work continues")
    assert unit == "sales/shop.items is suspended on n2: no"
    _, units = call(capsys, "cluster", "tasks", "sales")
    assert [(one["name"], one["work"], one["why"]) for one in units] == [
        ("shop.items", "suspended", "no"),
        ("shop.orders", None, None),
    ]
    assert main(["cluster", "tasks"]) == 0
    assert "nobody had it\n  suspended: no\n" in capsys.readouterr().out


def test_a_node_whose_lease_is_old_is_watched_and_then_silent(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polynya.cli.cluster_status.WATCH_SECONDS", 0.2)
    monkeypatch.setattr("polynya.cli.cluster_status._POLL_SECONDS", 0.05)
    path = place / "main" / "nodes" / "n2.aa"
    lease = json.loads(path.read_text())
    old = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    path.write_text(json.dumps(lease | {"renewed_at": old}))

    code, (status,) = call(capsys, "cluster", "status")

    assert code == 1
    assert status["status"] == "Running (under-provisioned)"
    assert status["reason"] == "no node has shop.items"


def test_requests_are_written_for_the_nodes_and_withdrawn(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (
        ["cluster", "drain", "n2", "--reason", "kernel"],
        ["cluster", "freeze", "--reason", "audit"],
        ["cluster", "move", "sales/orders", "n2"],
        ["task", "stop", "sales", "--reason", "month end"],
    ):
        assert main(arguments) == 0
    found = read_cluster(LocalObjectStore(place), "main")
    assert found.drains["n2"].reason == "kernel"
    assert found.freeze is not None
    assert found.freeze.reason == "audit"
    assert {unit: wish.to for unit, wish in found.moves.items()} == {X: "n2"}
    assert found.tasks["sales"].reason == "month end"
    capsys.readouterr()

    done = [
        call(capsys, *arguments)[1][0]["was"]
        for arguments in (
            ["cluster", "undrain", "n2"], ["cluster", "unfreeze"],
            ["cluster", "unmove", "sales/shop.orders"], ["task", "start", "sales"],
            ["task", "start", "sales"],
        )
    ]  # fmt: skip

    assert done == [True, True, True, True, False]
    after = read_cluster(LocalObjectStore(place), "main")
    assert (after.drains, after.freeze, after.moves, after.tasks) == ({}, None, {}, {})


@pytest.mark.parametrize(
    ("arguments", "warning"),
    [
        (
            ["cluster", "drain", "n7"],
            "main has no node n7 now; the request waits for it; it has n1, n2",
        ),
        (["cluster", "move", "sales", "n7"], "main has no node n7 now"),
        (
            ["task", "stop", "sale"],
            "main has no task sale now; the request waits for it; it has sales",
        ),
        (["task", "resume", "sale"], "main has no task sale now"),
    ],
)
def test_who_asks_something_of_what_is_not_there_is_told_so(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], warning: str
) -> None:
    assert main(arguments) == 0

    found = read_cluster(LocalObjectStore(place), "main")
    assert found.drains or found.moves or found.tasks
    assert warning in " ".join(capsys.readouterr().err.split())


def test_what_is_there_is_asked_without_a_warning_and_waits_in_a_frozen_cluster(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "drain", "n2"]) == main(["task", "stop", "sales"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["cluster", "freeze", "--reason", "audit"]) == 0
    assert main(["cluster", "move", "sales/orders", "n2"]) == 0

    assert "UTC: audit: nothing moves now" in " ".join(capsys.readouterr().err.split())
    assert main(["cluster", "tasks", "sales"]) == 0
    assert "\n  to be on n2, asked by " in capsys.readouterr().out


def test_a_move_to_a_drained_node_says_that_it_waits(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "drain", "n2", "--reason", "kernel"]) == 0
    assert capsys.readouterr().err == ""

    assert main(["cluster", "move", "sales/orders", "n2"]) == 0

    said = " ".join(capsys.readouterr().err.split())
    assert "n2 was drained by " in said
    assert "kernel: it gets nothing until `polynya cluster undrain n2`" in said


def test_a_task_is_moved_with_all_its_units_and_an_unknown_one_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "move", "sales", "n1"]) == 0
    assert len(read_cluster(LocalObjectStore(place), "main").moves) == 2
    capsys.readouterr()

    assert main(["cluster", "move", "sales/nothing", "n1"]) == 2

    said = capsys.readouterr().err
    assert "no unit `sales/nothing`" in said
    assert "sales/shop.items, sales/shop.orders" in said


def test_where_there_is_nothing_to_list_that_is_said(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["cluster", "list", "--coordination", str(tmp_path / "empty")]) == 0
    assert main(["cluster", "nodes", "--cluster", "other"]) == 0
    assert main(["cluster", "tasks", "sale"]) == 0

    said = capsys.readouterr()
    assert said.out == ""
    assert "no cluster ever had a node at" in said.err
    assert "other has no node; `--gone` shows those that have left" in said.err
    assert "main has no unit of sale on a node or in a plan" in said.err


def test_who_names_no_place_is_told_what_to_add(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POLYNYA_COORDINATION", raising=False)

    assert main(["cluster", "status"]) == 2
    assert "--coordination PLACE" in capsys.readouterr().err
    assert main(["cluster", "status", "--coordination", str(tmp_path)]) == 2
    assert "--cluster NAME" in capsys.readouterr().err


def test_a_reload_from_the_source_is_left_to_nodes_that_know_it(place: Path) -> None:
    """Others would reload what has landed."""
    assert main(["reload", "sales", "--dataset", "shop.items", "--from", "source"]) == 0

    assert read_cluster(LocalObjectStore(place), "main").requests[Y].kind == "reload-from-source"


def test_a_task_is_recreated_and_reloaded_by_the_nodes_that_have_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["task", "recreate", "sales", "--dataset", "orders", "--reason", "keys"]) == 0
    assert main(["reload", "sales", "--dataset", "shop.items", "--files", "new/*.json"]) == 0
    capsys.readouterr()
    found = read_cluster(LocalObjectStore(place), "main").requests
    assert (found[X].kind, found[X].dataset, found[X].reason) == ("recreate", None, "keys")
    assert (found[Y].kind, found[Y].files) == ("reload", "new/*.json")

    assert main(["task", "withdraw", "sales", "--dataset", "orders"]) == 0
    assert main(["reload", "sales"]) == 5
    assert read_cluster(LocalObjectStore(place), "main").requests.keys() == {Y}
    assert "shop.items has a pending request: reload by" in capsys.readouterr().err
    _, units = call(capsys, "cluster", "tasks", "sales")
    assert "reload asked by" in units[0]["asked"]
    assert "n2 does it, or does so after its step" in units[0]["asked"]
    _, gone = call(capsys, "task", "withdraw", "sales")
    assert [one["was"] for one in gone] == [True, False]
    assert read_cluster(LocalObjectStore(place), "main").requests == {}


def test_a_run_of_a_task_is_asked_of_each_node_that_has_a_part_of_it(place: Path) -> None:
    assert main(["task", "run", "sales", "--apply", "always"]) == 0

    found = read_cluster(LocalObjectStore(place), "main").requests
    assert {(one.kind, one.apply) for one in (found[X], found[Y])} == {("run", "always")}


def test_a_request_in_a_frozen_cluster_waits_and_says_so(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["cluster", "freeze", "--reason", "audit"])

    assert main(["reload", "sales", "--dataset", "orders"]) == 0

    assert "waits: the cluster was frozen by" in capsys.readouterr().err
    assert main(["cluster", "status"]) == 0
    assert "  asked          sales/shop.orders: reload asked by" in capsys.readouterr().out


def test_who_waits_for_a_request_sees_its_outcome(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    register = DocumentStore(LocalObjectStore(place), "main", random.Random(2))
    node = UnitRequests(register, "n1", SystemClock())

    def does_it(_seconds: float) -> None:
        for unit, asked in node().items():
            text = "POLYNYA-LAKE-014: no file"
            node.settle(FinishedRequest(unit, asked, unit == X, text, epoch=3))
            node()

    monkeypatch.setattr(SystemClock, "sleep", lambda _clock, seconds: does_it(seconds))

    code, lines = call(capsys, "reload", "sales", "--wait")

    outcomes = [line for line in lines if line["type"] == "unit.outcome"]
    assert code == 1
    assert [(one["name"], one["done"], one["node"]) for one in outcomes] == [
        ("shop.items", False, "n1"),
        ("shop.orders", True, "n1"),
    ]
