"""Queries of transforms that no table keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.derived.query_errors import query_errors
from polynya.engine.commands.lineage import project_graph
from polynya.model.config.derived import DerivedTask
from polynya.model.errors import ConfigErrors
from polynya.model.loader import load_project
from tests.projects import USERS, write_project

SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [users]
datasets:
  - {name: seen, sql: SELECT userId FROM users, materialize: view}
  - {name: people, sql: SELECT userId FROM users, keys: [userId]}
"""
MORE = """\
apiVersion: polynya/v1
kind: transform
name: more
from: [sales]
datasets: [{name: more, sql: SELECT userId FROM seen, keys: [userId]}]
"""


def refusals(folder: Path, sales: str, **tasks: str) -> list[str]:
    with pytest.raises(ConfigErrors) as caught:
        load_project(write_project(folder, users=USERS, sales=sales, **tasks))
    return [str(error) for error in caught.value.errors]


def test_a_view_is_none_of_the_tables_of_its_task(tmp_path: Path) -> None:
    project = load_project(write_project(tmp_path, users=USERS, sales=SALES))

    task = project.tasks[-1]
    assert isinstance(task, DerivedTask)
    assert query_errors(project) == []
    assert [dataset.name for dataset in task.datasets] == ["people"]
    assert {task.view_of(name) for name in task.query_views} == {"sales.seen"}


def test_a_transform_may_have_views_alone(tmp_path: Path) -> None:
    sales = SALES.rpartition("  - ")[0]

    project = load_project(write_project(tmp_path, users=USERS, sales=sales))

    assert [task.name for task in project.tasks] == ["users", "sales"]


@pytest.mark.parametrize(
    "setting",
    ["keys: [userId]", "history: true", "expect: [{not_null: [a]}]", "incremental: strict"],
)
def test_a_setting_that_needs_rows_is_refused(tmp_path: Path, setting: str) -> None:
    (error,) = refusals(tmp_path, SALES.replace("view}", f"view, {setting}}}"))

    assert f"a view keeps no rows, so it has no `{setting.partition(':')[0]}`" in error


def test_a_table_needs_keys_and_a_name_is_taken_once(tmp_path: Path) -> None:
    errors = refusals(tmp_path / "a", SALES.replace(", keys: [userId]", ""))
    assert "a table needs `keys`" in errors[0]

    errors = refusals(tmp_path / "b", SALES.replace("name: seen", "name: PEOPLE"))
    assert errors
    assert errors[0].startswith("tasks/sales.yml:6:")


def test_the_query_of_a_view_is_checked_and_no_table_reads_it(tmp_path: Path) -> None:
    sales = SALES.replace("FROM users, materialize", "FROM usres, materialize")
    project = load_project(write_project(tmp_path, users=USERS, sales=sales, more=MORE))

    wrong, unread = query_errors(project)

    assert (wrong.code, wrong.where) == ("POLYNYA-TRF-076", "tasks/sales.yml:6:18")
    assert "usres" in wrong.message
    assert unread.where == "tasks/more.yml:5:25"
    assert "a view, which only views read" in unread.message


def test_lineage_leads_through_a_view(tmp_path: Path) -> None:
    users = USERS.replace(
        "name: users\n    keys", "name: users\n    columns: {userId: int}\n    keys"
    )
    project = load_project(write_project(tmp_path, users=users, sales=SALES))

    graph = project_graph(project, None)

    (column,) = graph.datasets["sales.seen"].columns
    assert column.name == "userId"
    assert ("shop.users", "userId") in column.origins.inputs
