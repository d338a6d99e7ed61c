"""Transforms read tasks of other projects, which they never run."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.derived.query_errors import query_errors
from polynya.engine.ledger import ledger_dataset
from polynya.model.config.derived import DerivedTask, ForeignTask
from polynya.model.errors import ConfigErrors
from polynya.model.loader import LoadedProject, load_project
from polynya.store.configuration import FolderSource, is_project_file
from polynya.store.project_archive import secrets_in
from tests.projects import BANK, PROJECT, USERS, write_project

SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [{project: crm_core, task: users}, users]
datasets:
  - {name: people, sql: "SELECT userId AS id FROM QUERY", keys: [id]}
"""
OWN = USERS.replace("schema: shop", "schema: own")


def projects(folder: Path, *, query: str = "shop.users", **tasks: str) -> Path:
    """A project that reads the tables of another one, which lies beside it."""
    core = write_project(folder / "core", users=USERS, bank=BANK)
    project = PROJECT.replace("./warehouse", str(folder / "warehouse"))
    (core / "polynya.yml").write_text(project.replace("name: shop", "name: core"))
    own = write_project(
        folder / "sales", sales=SALES.replace("QUERY", query), **{"users": OWN, **tasks}
    )
    (own / "polynya.yml").write_text(project)
    (own / "projects").mkdir()
    (own / "projects/crm_core").symlink_to(core)
    return own


def refusals(folder: Path) -> list[str]:
    with pytest.raises(ConfigErrors) as caught:
        load_project(folder)
    return [f"{error.code} {error.where} {error.message}" for error in caught.value.errors]


def test_a_task_of_another_project_is_read_and_no_work(tmp_path: Path) -> None:
    project: LoadedProject = load_project(projects(tmp_path))

    assert query_errors(project) == []
    assert [task.name for task in project.works] == ["users", "sales"]
    sales = project.tasks[-1]
    assert isinstance(sales, DerivedTask)
    assert [read.name for read in sales.reads] == ["crm_core/users", "users"]
    (foreign,) = project.foreign
    assert foreign.schema_ == "shop"


def test_tables_that_a_task_finds_have_the_names_of_its_project(tmp_path: Path) -> None:
    project = load_project(projects(tmp_path))
    (bank,) = (
        task
        for task in load_project(project.directory / "projects/crm_core").tasks
        if task.name == "bank"
    )

    ours, theirs = ledger_dataset(ForeignTask.of(bank, "crm_core")), ledger_dataset(bank)

    assert ours.relations == theirs.relations


def test_a_name_that_two_projects_have_is_written_with_its_schema(tmp_path: Path) -> None:
    (error,) = query_errors(load_project(projects(tmp_path, query="users")))

    assert error.code == "POLYNYA-TRF-076"
    assert "own.users or shop.users" in error.message


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("sales/tasks/sales.yml", "task: users}", "task: user}"), "no task with tables"),
        (("sales/tasks/sales.yml", "crm_core", "crm"), "there is no folder `projects/crm`"),
        (("sales/tasks/sales.yml", "crm_core", "../crm"), "project"),
        (("core/polynya.yml", "warehouse\n", "other\n"), "another catalog or warehouse"),
        (("core/polynya.yml", "local:", "production:"), "cannot be read"),
        (("core/tasks/users.yml", "keys:", "key:"), "a file there has an error"),
        (("sales/tasks/users.yml", "schema: own", "schema: shop"), "a table of both this project"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_place(
    tmp_path: Path, edit: tuple[str, str, str], message: str
) -> None:
    folder = projects(tmp_path)
    file, old, new = edit
    text = (tmp_path / file).read_text()
    assert old in text or "warehouse" in old
    changed = text.replace(old, new)
    if "warehouse" in old:
        changed = text.replace("/warehouse}", "/elsewhere}")
    (tmp_path / file).write_text(changed)

    errors = refusals(folder)

    assert any("tasks/sales.yml:4:" in error and message in error for error in errors), errors


def test_projects_that_read_each_other_are_refused(tmp_path: Path) -> None:
    folder = projects(tmp_path)
    core = tmp_path / "core"
    (core / "projects").mkdir()
    (core / "projects/shop").symlink_to(folder)
    back = SALES.replace("crm_core", "shop").replace("name: sales", "name: users")
    (core / "tasks/users.yml").write_text(back.replace(", users]", "]").replace("QUERY", "users"))

    errors = refusals(folder)

    assert any("the projects read each other: sales → core → sales" in one for one in errors)


def test_a_pushed_configuration_has_the_other_project(tmp_path: Path) -> None:
    files = FolderSource(projects(tmp_path)).read().files

    assert {"projects/crm_core/polynya.yml", "projects/crm_core/tasks/users.yml"} <= files.keys()
    assert all(is_project_file(name) for name in files)


def test_a_secret_in_a_file_of_another_project_is_found() -> None:
    connection = b"""\
kind: connection
type: http
url: https://api.example.com
auth: {type: bearer, token: written-down}
"""

    for path in ("connections/a.yml", "projects/b/connections/a.yml"):
        assert [error.where for error in secrets_in(path, connection)] == [f"{path}:4:22"]


@pytest.mark.parametrize(
    "path",
    ["projects/a/tests/b.yml", "projects/a/b/c.yml", "projects/a.yml", "projects/../a/polynya.yml"],
)
def test_other_files_below_the_folder_of_projects_are_none_of_the_project(path: str) -> None:
    assert not is_project_file(path)
