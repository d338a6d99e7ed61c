"""Several clusters on one project: each task has one of them, whatever is pushed in which order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from polynya.cluster.configuration import (
    UNNAMED_CLUSTER,
    Acceptance,
    ActiveConfiguration,
    ClusterTasks,
)
from polynya.engine.commands.plan_project import MovedTask, moved_tasks
from polynya.model.errors import ConfigErrors
from polynya.model.loader import load_project
from tests.cluster.fakes import GOOD, PROJECT, snapshot, task
from tests.projects import CLICKS

BIG = "cluster: big\n"
SHARED = GOOD | {"polynya.yml": f"{PROJECT}cluster: main\n", "tasks/b.yml": task("b") + BIG}


class Node:
    """A node of a cluster that reads one configuration after the other."""

    def __init__(self, work: Path, mine: ClusterTasks) -> None:
        self.acceptance = Acceptance(work, None, Path("/srv/shop"), mine)
        self.before: Mapping[str, bytes] = {}

    def reads(self, files: Mapping[str, str]) -> ActiveConfiguration:
        found = self.acceptance.accept(snapshot(files), self.before)
        self.before = found.files
        return found

    def takes(self, files: Mapping[str, str]) -> list[str]:
        return sorted(self.reads(files).tasks)


@pytest.fixture
def nodes(tmp_path: Path) -> dict[str, Node]:
    return {name: Node(tmp_path / name, ClusterTasks(name)) for name in ("main", "big", "other")}


def test_each_task_has_one_cluster(nodes: dict[str, Node]) -> None:
    files = SHARED | {"tasks/clicks.yml": CLICKS + BIG}

    taken = {name: node.takes(files) for name, node in nodes.items()}

    assert taken == {"main": ["a"], "big": ["b", "clicks"], "other": []}
    assert nodes["main"].reads(files).elsewhere == {
        "b": "cluster big has it",
        "clicks": "cluster big has it",
    }


def test_a_project_that_names_no_cluster_has_one_however_that_is_called(
    nodes: dict[str, Node],
) -> None:
    assert nodes["main"].takes(GOOD) == ["a", "b"]


def test_an_agent_that_is_told_no_name_is_of_the_cluster_that_the_project_names(
    tmp_path: Path,
) -> None:
    assert Node(tmp_path, ClusterTasks()).takes(SHARED) == ["a"]


def test_where_clusters_share_a_project_a_task_of_which_nobody_says_whose_it_is_waits(
    tmp_path: Path,
) -> None:
    """Two clusters that both took it would take its tables from each other without end."""
    node = Node(tmp_path, ClusterTasks("main", only_named=True))

    assert node.takes(GOOD) == []
    assert node.reads(GOOD).elsewhere == {"a": UNNAMED_CLUSTER, "b": UNNAMED_CLUSTER}
    assert node.takes(SHARED) == ["a"]


def test_a_task_moves_by_an_edit_and_is_wanted_by_one_cluster(nodes: dict[str, Node]) -> None:
    after = SHARED | {"tasks/b.yml": task("b")}
    for node in nodes.values():
        node.reads(SHARED)

    assert nodes["big"].takes(after) == []
    assert nodes["main"].takes(after) == ["a", "b"]


def test_a_task_that_names_a_cluster_is_wrong_while_the_project_names_none(
    nodes: dict[str, Node],
) -> None:
    """It goes on as it was: with the one cluster that the project has."""
    nodes["main"].reads(GOOD)

    found = nodes["main"].reads(GOOD | {"tasks/b.yml": task("b") + BIG})

    assert sorted(found.tasks) == ["a", "b"]
    assert found.errors["tasks/b.yml"].code == "POLYNYA-CFG-016"
    assert "the project names no cluster" in str(found.errors["tasks/b.yml"])


@pytest.mark.parametrize("name", ["'a b'", "''", "../x", "'-a'", "[a]"])
def test_what_no_cluster_can_be_called_is_an_error(name: str, tmp_path: Path) -> None:
    files = SHARED | {"tasks/b.yml": f"{task('b')}cluster: {name}\n"}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")

    with pytest.raises(ConfigErrors) as raised:
        load_project(tmp_path)

    assert [error.where for error in raised.value.errors] == ["tasks/b.yml:8:1"]


def test_a_plan_knows_which_tasks_move(tmp_path: Path) -> None:
    node = Node(tmp_path, ClusterTasks())
    before = node.reads(GOOD).project
    shared = node.reads(SHARED).project
    after = node.reads(SHARED | {"tasks/b.yml": task("b"), "tasks/c.yml": task("c")}).project

    assert moved_tasks(None, after) == ()
    assert moved_tasks(shared, after) == (MovedTask("b", "big", "main"),)
    # A project that names its cluster for the first time calls the one that it has by its name.
    assert moved_tasks(before, shared) == (MovedTask("b", "main", "big"),)
