"""Automations in the agents of a cluster: one run for a moment, whichever nodes live and lead."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from polynya.automation.commands import ActionEnd
from polynya.automation.state import AutomationStore
from polynya.cli.main import main
from polynya.cluster.automations import AutomationPlace, ClusterAutomations
from polynya.model.loader import load_project
from polynya.observe.events import Event
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock
from tests.projects import USERS, write_project

HEAD = "apiVersion: polynya/v1\nkind: automation\nname: checks\n"
HOURLY = 'triggers: [{schedule: "0 * * * *", time_zone: UTC}]\n'
VALIDATE = "actions: [{validate: true}]\n"
GOOD = ActionEnd(success=True)


class Recorded:
    """Commands that are noted and end well, or never."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.hangs = threading.Event()
        self.hangs.set()

    def run(self, arguments: Sequence[str], limit: Any, goes_on: Any) -> ActionEnd:
        self.lines.append(" ".join(arguments))
        self.hangs.wait(30)
        return GOOD


class Cluster:
    """What nodes share: the project, the time and the warehouse."""

    def __init__(self, folder: Path, text: str = HOURLY + VALIDATE) -> None:
        self.folder = write_project(folder, users=USERS)
        (self.folder / "automations").mkdir()
        (self.folder / "automations" / "checks.yml").write_text(HEAD + text)
        (self.folder / "warehouse").mkdir()
        self.store = AutomationStore(LocalObjectStore(self.folder / "warehouse"))
        self.clock, self.told = FakeClock(), list[Event]()
        self.commands = Recorded()
        self.names: dict[int, str] = {}
        #: Threads of nodes that died, which do nothing more.
        self.dead: set[threading.Thread] = set()

    def node(self, name: str = "n1", *, coordination: str | None = "./agreed") -> Any:
        """The automations of a new node."""
        made = ClusterAutomations(
            AutomationPlace(name, self.folder, coordination, "main"),
            clock=self.clock, tell=self.told.append,
            store_of=lambda _: self.store, commands_of=lambda _: self.commands,
        )  # fmt: skip
        made.configure(load_project(self.folder))
        self.names[id(made)] = name
        return made

    def leads(
        self,
        node: Any,
        *,
        leading: bool = True,
        leader: str | None = "n1",
        tasks: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """A report of the node says whether it leads, and how its tasks are."""
        sharing = {"leading": leading, "leader": leader}
        head = {"at": self.clock.now(), "node": self.names[id(node)], "cluster": "main"}
        node.put({**head, "state": "running", "sharing": sharing, "tasks": tasks})

    def look(self, *nodes: Any) -> None:
        """Let each node look, and runs that do not hang end."""
        for node in nodes:
            node.look()
        if self.commands.hangs.is_set():
            for thread in set(threading.enumerate()) - self.dead:
                if thread.name.startswith("automation "):
                    thread.join(30)

    def hour(self) -> None:
        self.clock.advance(timedelta(hours=1))

    def runs(self) -> list[str]:
        return [run.state for run in self.store.runs("checks")]


def test_only_the_leader_looks(tmp_path: Path) -> None:
    here = Cluster(tmp_path)
    first, second = here.node("n1"), here.node("n2")
    here.leads(first)
    here.leads(second, leading=False)
    for _ in range(3):
        here.look(first, second)
        here.hour()

    assert here.runs() == ["success"] * 2
    here.leads(first, leading=False, leader="n2")
    here.look(first)
    assert here.runs() == ["success"] * 2


def test_two_nodes_that_think_they_lead_run_a_moment_once(tmp_path: Path) -> None:
    here = Cluster(tmp_path)
    nodes = [here.node(name) for name in ("n1", "n2", "n3")]
    for node in nodes:
        here.leads(node)
    here.look(*nodes)
    here.hour()
    threads = [threading.Thread(target=node.look) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    here.look(*nodes)

    assert here.runs() == ["success"]
    assert len(here.commands.lines) == 1


def test_moments_outlast_the_node_and_a_run_that_died_with_it_is_reported(tmp_path: Path) -> None:
    here = Cluster(tmp_path)
    first, second = here.node("n1"), here.node("n2")
    here.leads(first)
    here.look(first)
    here.hour()
    here.commands.hangs.clear()
    here.look(first)
    while not here.commands.lines:
        time.sleep(0.01)
    here.dead = set(threading.enumerate())
    # The node dies during the run; its moment while nobody leads is made up for by the next one.
    here.hour()
    here.leads(second)
    dead, here.commands = here.commands, Recorded()
    second.configure(load_project(here.folder))
    here.look(second)
    assert sorted(here.runs()) == ["interrupted", "success"]
    assert "POLYNYA-AUT-006" in {getattr(event, "code", "") for event in here.told}
    here.hour()
    here.look(second)
    # What a node that was only slow finds is a run that others have closed.
    dead.hangs.set()
    here.dead.clear()
    here.look(second)

    assert sorted(here.runs()) == ["interrupted", "success", "success"]


def test_an_agent_that_drains_begins_no_run(tmp_path: Path) -> None:
    here = Cluster(tmp_path)
    node = here.node()
    here.leads(node)
    here.look(node)
    here.hour()
    node.stop()
    here.look(node)

    assert here.runs() == []


@pytest.mark.parametrize(
    ("coordination", "steps", "lines", "code"),
    [
        (
            "./agreed",
            ["success", "skipped", "success", "success", "success", "success"],
            [
                "task run users --apply always --wait",
                "maintain --wait",
                "reload users --mode compare_and_apply_with_deleted_rows --wait",
                "export PROJECT PROJECT/warehouse/.polynya/archives/a.tar.gz",
                "verify",
            ],
            "",
        ),
        (
            None,
            ["skipped", "skipped", "skipped", "failure", "skipped", "skipped"],
            [],
            "POLYNYA-AUT-015",
        ),
    ],
)
def test_actions_take_no_table_from_its_owner(
    tmp_path: Path, coordination: str | None, steps: list[str], lines: list[str], code: str
) -> None:
    actions = (
        "{run: [users], apply: always}, {run: [users], apply: never}, {maintain: []}, "
        "{reload: users}, {export: a.tar.gz}, {verify: all}"
    )
    here = Cluster(tmp_path, f"{HOURLY}actions: [{actions}]\n")
    node = here.node(coordination=coordination)
    node.put({"state": "running", "sharing": None})
    here.look(node)
    here.hour()
    here.look(node)

    (run,) = here.store.runs("checks")
    assert [step.state for step in run.steps] == steps
    assert "all the time" in run.steps[1].message
    assert (run.code or "") == code
    assert here.commands.lines == [one.replace("PROJECT", str(here.folder)) for one in lines]


AFTER = "triggers: [{after: [users]}, {overdue: users, longer_than: 1h}]\n"


def users_of(*, own: bool, step: datetime | None = None, **values: Any) -> dict[str, Any]:
    """The task `users` in a report of a node; `step` is its last commit."""
    unit = {
        "state": "running" if own else "elsewhere", "reason": "runs", "held": False,
        "failed_in_a_row": 0, "rounds": 9, "epoch": 1, "version": "v1", "lag_seconds": 0.0,
        "last_step": None if step is None else {"type": "batch.copied", "at": step},
        "backlog": {"files": 0}, "streams": {}, "captures": {}, "mirrors": {}, **values,
    }  # fmt: skip
    return {"users": {"jobs": {"users": unit}}}


def test_a_commit_of_any_node_starts_what_waits_for_the_task_once(tmp_path: Path) -> None:
    here = Cluster(tmp_path, AFTER + VALIDATE)
    owner, leader, next_leader = here.node("n1"), here.node("n2"), here.node("n3")

    def turn(lead: Any, **unit: Any) -> None:
        here.clock.advance(timedelta(minutes=2))
        for node in (owner, leader, next_leader):
            tasks = users_of(own=node is owner, **unit)
            here.leads(node, leading=node is lead, leader="another", tasks=tasks)
            here.look(node)

    turn(leader)
    turn(leader)
    step = here.clock.now() + timedelta(seconds=90)
    turn(leader, step=step)
    turn(leader, step=step)
    assert [run.why for run in here.store.runs("checks")] == ["users ended well"]
    # The next leader starts nothing again, and sees the next end.
    turn(next_leader, step=step)
    assert here.runs() == ["success"]
    step = here.clock.now() + timedelta(seconds=90)
    turn(next_leader, step=step)
    turn(leader, step=step)

    assert here.runs() == ["success"] * 2
    assert "automation.failed" not in [event.type for event in here.told]


def test_two_leaders_start_one_run_for_an_end_of_a_task(tmp_path: Path) -> None:
    here = Cluster(tmp_path, AFTER + VALIDATE)
    nodes = [here.node(name) for name in ("n1", "n2", "n3")]

    def turn(step: datetime | None = None) -> None:
        for node in nodes:
            here.leads(node, tasks=users_of(own=node is nodes[0], step=step))
        threads = [threading.Thread(target=node.look) for node in nodes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        here.look(*nodes)
        here.clock.advance(timedelta(minutes=2))

    turn()
    for _ in range(3):
        step = here.clock.now() - timedelta(seconds=30)
        turn(step)
        turn(step)

    assert here.runs() == ["success"] * 3


def test_a_task_that_takes_nothing_in_is_overdue_once_also_for_the_next_leader(
    tmp_path: Path,
) -> None:
    here = Cluster(tmp_path, AFTER + VALIDATE)
    owner, other = here.node("n1"), here.node("n2")
    fails = {"failed_in_a_row": 3, "reason": "POLYNYA-LAKE-001: no such column"}

    def hours(number: int, lead: Any, **unit: Any) -> None:
        for _ in range(6 * number):
            here.clock.advance(timedelta(minutes=10))
            for node in (owner, other):
                tasks = users_of(own=node is owner, **unit)
                here.leads(node, leading=node is lead, leader="another", tasks=tasks)
                here.look(node)

    hours(3, other)
    assert here.runs() == []
    hours(2, other, **fails)
    hours(2, owner, **fails)
    assert [run.why for run in here.store.runs("checks")] == [
        "users has not ended well for longer than 1h"
    ]
    hours(1, owner)
    hours(2, owner, **fails)

    assert here.runs() == ["success"] * 2


def test_a_failure_starts_what_waits_for_it(tmp_path: Path) -> None:
    triggers = "triggers: [{after: [users], result: failure}]\n"
    here = Cluster(tmp_path, triggers + VALIDATE)
    node = here.node(coordination=None)
    for state in ("running", "waiting", "waiting", "running", "waiting"):
        here.clock.advance(timedelta(minutes=2))
        failed = int(state == "waiting")
        unit = users_of(own=True, state=state, failed_in_a_row=failed, epoch=None)
        here.leads(node, tasks=unit)
        here.look(node)
        here.clock.advance(timedelta(minutes=2))
        here.leads(node, tasks=unit)
        here.look(node)

    assert [run.why for run in here.store.runs("checks")] == ["users ended with a failure"] * 2


def test_the_next_moment_wakes_an_empty_cluster_unless_it_is_paused(tmp_path: Path) -> None:
    here = Cluster(tmp_path)
    node = here.node()
    now = here.clock.now()
    assert node.due(now) == {"automation checks": now + timedelta(hours=1)}

    here.leads(node)
    here.store.set_pause("checks", now)
    here.look(node)
    assert node.due(now) == {}


def test_a_broken_automation_is_told_and_stops_nothing(tmp_path: Path) -> None:
    here = Cluster(tmp_path)
    (here.folder / "automations" / "more.yml").write_text("kind: automation\n")
    node = here.node()
    here.leads(node)
    here.look(node)
    here.hour()
    here.look(node)

    assert here.runs() == ["success"]
    assert "automation.failed" in [event.type for event in here.told]


def test_what_a_cluster_does_not_carry_out_is_a_warning_of_validate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    actions = "actions: [{run: [users], apply: never}, {export: a.tar.gz}, {validate: true}]\n"
    here = Cluster(tmp_path, "triggers: [{overdue: users, longer_than: 1h}]\n" + actions)
    told = ["validate", "-p", str(here.folder), "--json"]
    assert main(told) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["warnings"] == []

    project = here.folder / "polynya.yml"
    project.write_text(f"{project.read_text()}cluster: main\n")
    assert main(told) == 0
    warnings = json.loads(capsys.readouterr().out.splitlines()[-1])["warnings"]
    assert [one.split(": in the cluster main, ")[1] for one in warnings] == [
        "action 1 is skipped: agents copy all the time",
    ]
