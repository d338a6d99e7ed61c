"""`polynya flow show`: the flow of a transform over the columns that its tables have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from polynya.cli.flow import task_of
from polynya.cli.main import main
from polynya.derived.flow import CompiledFlow
from polynya.derived.schema import DerivedInput
from polynya.engine.commands import derived_queries
from polynya.engine.commands.derived_queries import compiled
from polynya.lake.table.state import CopyState, SourceColumns
from polynya.model import headers as h
from polynya.model.errors import PolynyaError
from polynya.model.loader import load_project
from tests.lake.warehouse.tables import catalog_in
from tests.projects import PROJECT, USERS

SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [users]
datasets:
  - name: people
    keys: [userId]
    flow:
      - filter: {input: users, condition: "city IS NOT NULL"}
      - select: [userId, city]
  - name: cities
    keys: [city]
    sql: SELECT DISTINCT city FROM users WHERE city IS NOT NULL
"""
USERS_TABLE = {
    "shop.users": DerivedInput("shop.users", {"userId": "bigint", "city": "string"}, ("userId",))
}


pytestmark = pytest.mark.usefixtures("without_java")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a transform."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "polynya.yml").write_text(PROJECT)
    (tmp_path / "tasks" / "users.yml").write_text(USERS)
    (tmp_path / "tasks" / "sales.yml").write_text(SALES)
    return tmp_path


def flow(folder: Path, tables: Mapping[str, DerivedInput | None] = USERS_TABLE) -> CompiledFlow:
    project = load_project(folder)
    task, name = task_of(project, "sales.people")
    return compiled(project, task, name, tables)


def test_a_flow_is_compiled_over_the_tables_of_its_transform(folder: Path) -> None:
    assert dict(flow(folder).columns) == {"userId": "bigint", "city": "string"}


def test_an_error_has_its_place_in_the_file(folder: Path) -> None:
    path = folder / "tasks" / "sales.yml"
    path.write_text(SALES.replace("[userId, city]", "[userId, town]"))

    with pytest.raises(PolynyaError) as caught:
        flow(folder)

    assert "tasks/sales.yml:10:26: step 2 (`select`) names `town`" in str(caught.value)


def test_a_table_without_columns_is_named(folder: Path) -> None:
    with pytest.raises(PolynyaError) as caught:
        flow(folder, {"shop.users": None})

    assert str(caught.value).startswith("tasks/sales.yml:9:18: `shop.users` has no columns yet")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sales.cities", "`sales.cities` has no flow; allowed here: sales.people"),
        ("sales.peple", "`sales.peple` is not a dataset of a transform; did you mean"),
        ("shop.users", "is not a dataset of a transform"),
    ],
)
def test_other_names_are_refused(folder: Path, name: str, message: str) -> None:
    with pytest.raises(PolynyaError) as caught:
        task_of(load_project(folder), name)

    assert message in str(caught.value)


def test_the_command_shows_each_form(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(derived_queries, "derived_inputs", lambda *_: USERS_TABLE)

    def shown(form: str) -> str:
        assert main(["flow", "show", "sales.people", "-o", form, "-p", str(folder)]) == 0
        return capsys.readouterr().out

    assert "select_2    select  ← filter_1" in shown("text")
    assert shown("svg").startswith("<svg ")
    assert shown("sql").startswith("WITH `filter_1` AS (")
    assert json.loads(shown("json"))["steps"][1]["name"] == "select_2"


def test_a_project_that_has_not_run_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["flow", "show", "sales.people", "-p", str(folder)]) == 1

    assert "has no tables yet" in capsys.readouterr().err


def give_columns_to_users(folder: Path) -> None:
    """The state of a table as an applier writes it, without one."""
    (folder / "warehouse").mkdir()
    catalog = catalog_in(folder)
    catalog.create_namespace("shop_internal")
    columns = SourceColumns(schema={"userId": "bigint", "city": "string"}, keys=["userId"])
    rows = pa.table(
        {
            "userId": pa.array([None], pa.int64()),
            "city": pa.array([None], pa.string()),
            h.PARTITION: [str(h.Partition.ASSET_STATE)],
            h.COPY_CHANGE_IDENTIFIER: ["1"],
            h.STATE: [CopyState(columns=columns).to_json()],
        }
    )
    location = str(folder / "warehouse" / "shop_internal" / "users_internal")
    made = catalog.create_table(("shop_internal", "users_internal"), rows.schema, location=location)
    with made.update_spec() as spec:
        spec.add_identity(h.PARTITION)
    made.append(rows)


def test_columns_are_those_of_the_catalog(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    give_columns_to_users(folder)

    assert main(["flow", "show", "sales.people", "-p", str(folder)]) == 0

    assert "shop.users  table\n    userId bigint, city string\n" in capsys.readouterr().out


def test_plan_says_by_which_columns_steps_are_restricted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["plan", "-p", str(folder)])
    assert (
        "sales.people: how a step is restricted is known when its inputs have columns; its first "
        "step computes the whole query\n"
    ) in capsys.readouterr().out

    give_columns_to_users(folder)
    assert main(["plan", "-p", str(folder)]) == 3

    said = capsys.readouterr()
    assert "types are not compared, since Java was not found: sales.people, sales" in said.err
    shown = said.out
    assert "sales.people: a step computes the rows that changes concern, by userId; its" in shown
    assert "sales.cities: a step computes the rows that changes concern, by city; its" in shown


@pytest.mark.parametrize(
    ("right", "wrong", "code", "where", "says"),
    [
        ("WHERE city", "WHERE cty", "006", "13:5", "did you mean `city`?"),
        ("FROM users", "FROM users u, users v", "007", "13:5", "`u.city`, `v.city`"),
        ("keys: [city]", "keys: [cty]", "074", "12:5", "did you mean `city`?"),
        ("select: [userId, city]", "select: [userId, cty]", "0", "10:26", "cty"),
    ],
)
def test_plan_finds_wrong_names_with_the_columns_of_the_catalog(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    right: str,
    wrong: str,
    code: str,
    where: str,
    says: str,
) -> None:
    give_columns_to_users(folder)
    (folder / "tasks" / "sales.yml").write_text(SALES.replace(right, wrong))

    # The files do not tell all columns of landed records; a query tells those of its result.
    assert main(["validate", "-p", str(folder)]) == (2 if code == "074" else 0)
    capsys.readouterr()
    assert main(["plan", "-p", str(folder), "--json"]) == 1

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (error,) = (line for line in lines if line["type"] == "error")
    assert error["code"].startswith(f"POLYNYA-TRF-{code}")
    assert error["where"].startswith(f"tasks/sales.yml:{where}")
    assert says in f"{error['message']} {error['fix']}"
    # The other query is planned as if this one were not there.
    (step,) = (line for line in lines if line["type"] == "plan.step")
    assert step["restricted_by"]
    assert step["next_whole"] == "it has no rows yet"
    assert step["means"].endswith("; its first step computes the whole query")


def test_a_plan_knows_what_the_same_edit_brings(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give_columns_to_users(folder)
    chain = SALES.replace("name: sales", "name: chain").replace("[users]", "[sales]")
    chain = chain.replace("DISTINCT city FROM users", "DISTINCT town AS city FROM cities")
    chain = chain.replace("input: users", "input: people")
    edited = SALES.replace("DISTINCT city", "DISTINCT city, upper(city) AS town")
    (folder / "tasks" / "chain.yml").write_text(chain.replace("WHERE city", "WHERE town"))

    (folder / "tasks" / "sales.yml").write_text(edited)
    assert main(["plan", "-p", str(folder)]) == 3
    capsys.readouterr()

    # A query over a wrong one has no error by it.
    (folder / "tasks" / "sales.yml").write_text(edited.replace("upper(city)", "upper(cty)"))
    assert main(["plan", "-p", str(folder)]) == 1
    assert capsys.readouterr().err.count("error[") == 1


def test_plan_knows_the_columns_of_all_versions(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give_columns_to_users(folder)
    (folder / "tasks" / "users.yml").write_text(f"{USERS}    history: true\n")
    versions = "SELECT city, max(hdr__from_timestamp) AS seen FROM users__history GROUP BY city"
    task = SALES.replace("SELECT DISTINCT city FROM users WHERE city IS NOT NULL", versions)
    (folder / "tasks" / "sales.yml").write_text(task)

    main(["plan", "-p", str(folder)])

    shown = capsys.readouterr().out
    assert "sales.cities: a step computes the rows that changes concern, by city; its" in shown


def test_plan_refuses_a_strict_query_that_needs_all_rows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give_columns_to_users(folder)
    task = SALES.replace("SELECT DISTINCT city", "SELECT CAST(avg(length(city)) AS STRING) AS city")
    (folder / "tasks" / "sales.yml").write_text(f"{task}    incremental: strict\n")

    assert main(["plan", "-p", str(folder)]) == 1

    assert "POLYNYA-TRF-078" in capsys.readouterr().err
