"""`polynya mart`: drafts, and what a mart becomes as files that can take its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polynya.cli.main import main
from polynya.cli.mart import marts_of, transforms_of
from polynya.engine.commands import propose_mart
from polynya.engine.commands.propose_mart import JudgedTables
from polynya.model.config.derived import DerivedTask
from polynya.model.config.task import resolved
from polynya.model.loader import load_project
from tests.model.test_marts import MART, SHOP
from tests.projects import PROJECT
from tests.proposal.test_relationships import decided, numbered, table

SETTINGS = """\
prefix: dm_
internal_schema: hidden
views: {history: __all}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a mart that has settings of every kind."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "polynya.yml").write_text(PROJECT)
    (tmp_path / "tasks" / "shop.yml").write_text(SHOP)
    table = (
        "    keys: [id]\n    history: true\n    incremental: full\n"
        "    maintenance: {snapshot_expiry: {age: 3h}}\n"
    )
    text = MART.replace("    keys: [id]\n", table) + SETTINGS
    text = text.replace("where:", 'partition_by: ["bucket(4, order_id)"]\n    where:')
    (tmp_path / "tasks" / "sales.yml").write_text(text)
    return tmp_path


def facts(tasks: list[DerivedTask]) -> dict[str, object]:
    """All that decides about the tables of some tasks, but the name of the task."""
    return {
        dataset.name: (
            task.queries[dataset.name].text,
            task.queries[dataset.name].incremental,
            resolved(task, dataset).relations,
            dataset.model_dump(),
            task.views,
        )
        for task in tasks
        for dataset in task.datasets
    }


def test_the_shown_transforms_keep_the_same_tables(folder: Path) -> None:
    (mart,) = marts_of(load_project(folder))
    files = transforms_of(mart)

    (folder / "tasks" / "sales.yml").unlink()
    for name, text in files.items():
        (folder / "tasks" / f"{name}.yml").write_text(text)
    tasks = [one for one in load_project(folder).tasks if isinstance(one, DerivedTask)]

    assert list(files) == ["sales_dimensions", "sales"]
    assert facts(tasks) == facts([mart])


def test_one_table_is_shown_as_sql(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["mart", "show", "sales.fact_lines", "--project", str(folder)])

    out = capsys.readouterr().out
    assert (code, out.splitlines()[0]) == (0, "WITH facts AS (")
    assert "`sales`.`dm_customer`" in out


def test_an_unknown_name_has_the_nearest_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["mart", "show", "sale", "--project", str(folder)])

    assert code != 0
    assert "did you mean `sales`?" in capsys.readouterr().err


def test_nothing_is_proposed_and_written_without_rows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "tasks" / "draft.yml"
    options = ["--project", str(folder), "--out", str(file)]
    assert main(["mart", "propose", "shop", "--name", "draft", *options]) == 2
    assert "POLYNYA-TRF-110" in capsys.readouterr().err
    assert not file.exists()

    assert main(["mart", "propose", "shop", "--name", "sales", *options]) == 2
    assert "a task is called `sales` already" in capsys.readouterr().err


def test_a_draft_never_replaces_a_file(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [
        table("customers", "id", numbered(5)),
        table("orders", "id", numbered(5, customer_id=lambda n: n), amount="double"),
    ]
    profiles = [profile for profile, _ in tables]
    found = JudgedTables(profiles, decided(*tables))
    monkeypatch.setattr(propose_mart, "judged_references", lambda *_: found)
    file = folder / "tasks" / "draft.yml"
    command = ["mart", "propose", "shop", "--name", "draft", "--project", str(folder)]

    assert main([*command, "-o", "json"]) == 0
    (relationship,) = json.loads(capsys.readouterr().out)["relationships"]
    assert relationship["on"] == {"customer_id": "id"}
    assert relationship["confidence"] == "strong"
    assert not file.exists()

    assert main([*command, "--out", str(file)]) == 0
    written = file.read_text("utf-8")
    assert "- {from: shop.orders, to: shop.customers, on: {customer_id: id}}" in written
    assert main([*command[:-2], "--name", "other", *command[-2:], "--out", str(file)]) == 2
    assert file.read_text("utf-8") == written
