"""What is in force: the newest of each file that is right, else its last good one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from polynya.cluster.configuration import Acceptance, ActiveConfiguration
from polynya.engine.context import EngineContext
from polynya.engine.runner import units
from polynya.lake.spark.api import SparkSession
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.errors import ConfigErrors
from polynya.testing.fakes import MemoryObjectStore
from tests.cluster.fakes import BROKEN, GOOD, PROJECT, snapshot, task
from tests.projects import CLICKS


class Node:
    """A node that reads one configuration after the other."""

    def __init__(self, work: Path) -> None:
        self.acceptance = Acceptance(work, None, Path("/srv/shop"))
        self.before: Mapping[str, bytes] = {}

    def reads(self, files: Mapping[str, str]) -> ActiveConfiguration:
        found = self.acceptance.accept(snapshot(files), self.before)
        self.before = found.files
        return found


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    node.reads(GOOD)
    return node


def test_what_is_right_is_in_force(tmp_path: Path) -> None:
    found = Node(tmp_path).reads(GOOD)

    assert sorted(found.tasks) == ["a", "b"]
    assert found.errors == {}
    assert found.kept == ()
    assert found.project.target.landing == Path("/srv/shop/landing")


def test_a_landing_of_a_stream_is_a_task_like_any_other(node: Node) -> None:
    found = node.reads(GOOD | {"tasks/clicks.yml": CLICKS})
    broken = node.reads(GOOD | {"tasks/clicks.yml": CLICKS.replace("topics", "topic")})

    assert sorted(found.tasks) == ["a", "b", "clicks"]
    assert broken.tasks["clicks"] == found.tasks["clicks"]
    assert list(broken.errors) == ["tasks/clicks.yml"]


def test_bindings_are_in_force_for_the_tasks_that_they_bind(node: Node) -> None:
    by_name = CLICKS.replace("bootstrap_servers: broker:9092", "connection: events")
    by_name = by_name.replace("    properties: {security.protocol: SSL}\n", "")
    files = GOOD | {
        "connections/events.yml": "type: kafka\nbootstrap_servers: broker:9092\n",
        "tasks/clicks.yml": by_name,
    }
    bound = "connections: {events: {bootstrap_servers: 'moved:9092'}}\n"

    before = node.reads(files)
    after = node.reads(files | {"bindings/local.yml": bound})
    broken = node.reads(files | {"bindings/local.yml": "connections: ["})

    def brokers(found: ActiveConfiguration) -> str:
        landing = found.tasks["clicks"].task
        assert isinstance(landing, StreamingLanding)
        assert landing.source.kafka is not None
        return landing.source.kafka.bootstrap_servers

    assert (brokers(before), brokers(after), brokers(broken)) == (
        "broker:9092", "moved:9092", "moved:9092"
    )  # fmt: skip
    assert before.tasks["clicks"].version != after.tasks["clicks"].version
    assert before.tasks["a"].version == after.tasks["a"].version
    assert list(broken.errors) == ["bindings/local.yml"]


def test_an_agent_makes_one_unit_of_a_landing_which_finds_the_others(node: Node) -> None:
    found = node.reads(GOOD | {"tasks/clicks.yml": CLICKS})
    context = EngineContext(cast("SparkSession", None), MemoryObjectStore())

    [unit] = units(context, [found.tasks["clicks"].task])

    assert (unit.name, unit.task, unit.lands) == ("clicks", "clicks", True)


def test_only_the_task_whose_file_changed_has_a_new_version(node: Node) -> None:
    before = node.reads(GOOD).tasks
    after = node.reads(GOOD | {"tasks/a.yml": task("a") + "# a word\n"}).tasks

    assert after["a"].version != before["a"].version
    assert after["b"].version == before["b"].version


def test_a_default_of_the_project_changes_the_version_of_every_task(node: Node) -> None:
    before = node.reads(GOOD).tasks
    after = node.reads(GOOD | {"polynya.yml": PROJECT + "defaults: {history: true}\n"}).tasks

    assert all(after[name].version != before[name].version for name in "ab")


def test_a_broken_file_leaves_its_task_as_it_was_and_the_others_new(node: Node) -> None:
    before = node.reads(GOOD).tasks
    new = task("b") + "defaults: {history: true}\n"

    found = node.reads(GOOD | {"tasks/a.yml": BROKEN, "tasks/b.yml": new})

    assert found.tasks["a"] == before["a"]
    assert found.tasks["b"].version != before["b"].version
    assert found.kept == ("tasks/a.yml",)
    assert [(path, error.code, error.where) for path, error in found.errors.items()] == [
        ("tasks/a.yml", "POLYNYA-CFG-003", "tasks/a.yml:4:1")
    ]


def test_a_new_task_with_a_broken_file_is_only_reported(node: Node) -> None:
    found = node.reads(GOOD | {"tasks/c.yml": BROKEN})

    assert sorted(found.tasks) == ["a", "b"]
    assert list(found.errors) == ["tasks/c.yml"]


def test_a_file_with_an_unusable_name_is_only_reported(node: Node) -> None:
    found = node.reads(GOOD | {"tasks/c\n.yml": task("c"), "tasks/d.yml": task("d")})

    assert sorted(found.tasks) == ["a", "b", "d"]
    assert [error.code for error in found.errors.values()] == ["POLYNYA-CFG-011"]


def test_a_file_that_left_takes_its_task_along(node: Node) -> None:
    found = node.reads({path: text for path, text in GOOD.items() if path != "tasks/a.yml"})

    assert list(found.tasks) == ["b"]
    assert found.errors == {}


@pytest.mark.parametrize("name", ["tasks/0.yml", "tasks/z.yml"])
def test_who_claims_the_table_of_a_running_task_is_wrong(node: Node, name: str) -> None:
    found = node.reads(GOOD | {name: task("c", table="a")})

    assert sorted(found.tasks) == ["a", "b"]
    assert [error.code for error in found.errors.values()] == ["POLYNYA-CFG-013"]
    assert list(found.errors) == [name]


def test_tasks_that_swap_their_tables_in_part_stay_as_they_were(node: Node) -> None:
    """`a` takes the table of `b`, whose own new file is broken: neither changes."""
    before = node.reads(GOOD).tasks

    found = node.reads(GOOD | {"tasks/a.yml": task("a", table="b"), "tasks/b.yml": BROKEN})

    assert found.tasks == before
    assert sorted(found.errors) == ["tasks/a.yml", "tasks/b.yml"]


@pytest.mark.parametrize(
    "change",
    [
        {"polynya.yml": "name: ["},
        {"polynya.yaml": PROJECT},
        {"polynya.yml": PROJECT.replace("targets", "target")},
    ],
)
def test_without_a_good_project_file_the_one_from_before_holds(
    node: Node, change: dict[str, str]
) -> None:
    found = node.reads(GOOD | change | {"tasks/c.yml": task("c")})

    assert sorted(found.tasks) == ["a", "b", "c"]
    assert list(found.errors) == ["polynya.yml"]
    assert list(node.reads({"tasks/a.yml": task("a")}).tasks) == ["a"]


def test_a_node_that_never_had_a_good_project_file_has_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors):
        Node(tmp_path).reads(GOOD | {"polynya.yml": "name: ["})
    with pytest.raises(ConfigErrors):
        Node(tmp_path).reads({})
    assert Acceptance(tmp_path, None, tmp_path).stored() is None


def test_what_is_in_force_is_kept_for_a_start_without_the_source(node: Node) -> None:
    node.reads(GOOD | {"tasks/a.yml": BROKEN})

    stored = node.acceptance.stored()

    assert stored is not None
    assert stored.files == {path: text.encode() for path, text in GOOD.items()}
    assert sorted(node.acceptance.accept(stored, {}).tasks) == ["a", "b"]
