"""`polynya lineage` and the impact in `plan`, over tables that were written without an applier."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.types import LongType

from polynya.cli.main import main
from polynya.lake.table.state import CopyState, Derivation, SourceColumns
from polynya.model import headers as h
from polynya.model.config.dataset import recorded
from polynya.model.config.task import resolved
from polynya.model.loader import load_project
from tests.lake.warehouse.tables import catalog_in
from tests.mirror.test_settings import ACCOUNT, MIRROR
from tests.projects import USERS, write_project

pytestmark = pytest.mark.usefixtures("without_java")
SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [users]
datasets:
  - name: cities
    keys: [city]
    sql: SELECT city, sum(points) AS points, count(*) AS people FROM users GROUP BY city
  - name: people
    keys: [userId]
    sql: SELECT userId, name FROM users
"""


def make_table(folder: Path, name: str, columns: dict[str, pa.DataType], copy: CopyState) -> int:
    """A table with a state and no rows; its snapshot."""
    catalog = catalog_in(folder)
    schema, table = name.split(".")
    catalog.create_namespace_if_not_exists(schema)
    rows = pa.table(
        {
            **{column: pa.array([None], kind) for column, kind in columns.items()},
            h.PARTITION: [str(h.Partition.ASSET_STATE)],
            h.COPY_CHANGE_IDENTIFIER: ["1"],
            h.STATE: [copy.to_json()],
        }
    )
    made = catalog.create_table(
        (schema, table), rows.schema, location=str(folder / "warehouse" / schema / table)
    )
    with made.update_spec() as spec:
        spec.add_identity(h.PARTITION)
    made.append(rows)
    snapshot = made.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose table and transform have run."""
    write_project(tmp_path, users=USERS, sales=SALES)
    (tmp_path / "warehouse").mkdir()
    users, sales = load_project(tmp_path).tasks
    types = {"userId": "bigint", "name": "string", "city": "string", "points": "int"}
    snapshot = make_table(
        tmp_path,
        "shop_internal.users_internal",
        {"userId": pa.int64(), "name": pa.string(), "city": pa.string(), "points": pa.int32()},
        CopyState(
            columns=SourceColumns(schema=types, keys=["userId"], named=[]),
            settings=recorded(resolved(users, users.datasets[0]), {}, has_rows=False),
        ),
    )
    made = {"city": "string", "points": "bigint", "people": "bigint"}
    make_table(
        tmp_path,
        "sales_internal.cities_internal",
        {"city": pa.string(), "points": pa.int64(), "people": pa.int64()},
        CopyState(
            columns=SourceColumns(schema=made, keys=["city"]),
            settings=recorded(resolved(sales, sales.datasets[0]), {}, has_rows=False),
            derivation=Derivation("0", {"shop_internal.users_internal": snapshot}),
        ),
    )
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> str:
    assert main(["lineage", *arguments, "-p", str(folder)]) == 0
    return capsys.readouterr().out


def test_each_form_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, folder, "sales.cities.points")
    facts = json.loads(shown(capsys, folder, "cities.POINTS", "-o", "json"))
    events = shown(capsys, folder, "-o", "openlineage").splitlines()
    svg = shown(capsys, folder, "sales.cities", "-o", "svg")

    assert text.startswith(
        "sales.cities.points\n"
        "└── shop.users.points  aggregation\n"
        "    └── users/*.points  identity\n"
    )
    assert "rows of sales.cities\n└── shop.users.city  group by\n" in text
    assert [one["name"] for one in facts["datasets"]] == [
        "users/*", "shop.users", "sales.cities",
    ]  # fmt: skip
    (points,) = facts["datasets"][2]["columns"]
    assert points == {
        "name": "points", "type": "bigint", "masked_by": None, "unknown": [],
        "inputs": [{"dataset": "shop.users", "column": "points", "kinds": ["AGGREGATION"]}],
    }  # fmt: skip
    assert [json.loads(one)["job"]["name"] for one in events] == [
        "users.shop.users", "sales.sales.cities", "sales.sales.people",
    ]  # fmt: skip
    assert svg.startswith("<svg ")


def test_impact_is_what_uses_a_column(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, folder, "shop.users.city", "--impact")

    assert text == (
        "shop.users.city\n├── sales.cities.city  identity\n└── rows of sales.cities  group by\n"
    )


def test_an_unknown_name_is_answered_with_the_nearest(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lineage", "sales.cities.point", "-p", str(folder)]) == 2

    message = capsys.readouterr().err
    assert "POLYNYA-TRF-090" in message
    assert "did you mean `sales.cities.points`?" in message


def test_a_name_that_two_schemas_have_needs_its_schema(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "tasks" / "crm.yml").write_text(
        USERS.replace("name: users\nschema: shop", "name: crm\nschema: crm")
    )

    assert main(["lineage", "users.userId", "-p", str(folder)]) == 2

    message = capsys.readouterr().err
    assert "POLYNYA-TRF-091" in message
    assert "`crm.users.userId` or `shop.users.userId`" in message


def test_events_of_a_column_have_all_columns_of_its_datasets(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, folder, "sales.cities.points", "-o", "openlineage").splitlines()

    cities = json.loads(lines[-1])["outputs"][0]
    assert [one["name"] for one in cities["facets"]["schema"]["fields"]] == [
        "city", "points", "people",
    ]  # fmt: skip


def test_a_mirror_shows_the_columns_of_its_task(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror = MIRROR.replace("name: sales", "name: outside")
    (folder / "tasks" / "outside.yml").write_text(f"{mirror}views: {{prefix: x_}}\n")
    (folder / "connections").mkdir()
    (folder / "connections" / "sf.yml").write_text(ACCOUNT)

    text = shown(capsys, folder, "shop.users.name", "--impact")

    assert text == (
        "shop.users.name\n├── sales.people.name  (not made yet)  identity\n"
        "└── outside:x_users.name  identity\n"
    )


def impacts(capsys: pytest.CaptureFixture[str], folder: Path) -> list[dict[str, object]]:
    """What `plan` says of transforms."""
    code = main(["plan", "--json", "-p", str(folder)])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    is_wrong = any(line.get("fails") for line in lines)
    assert code == 1 if is_wrong else code in {0, 3}
    return [
        {name: value for name, value in line.items() if name != "type"}
        for line in lines
        if line["type"] == "plan.impact"
    ]


def test_plan_names_no_impact_where_nothing_changes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert impacts(capsys, folder) == []


def test_plan_names_transforms_that_read_a_column_that_goes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "tasks" / "users.yml").write_text(USERS + "    except_columns: [city]\n")

    (impact,) = impacts(capsys, folder)

    assert impact == {
        "dataset": "sales.cities",
        "task": "sales",
        "changed": {
            "dataset": "shop.users", "column": "city", "what": "the view no longer has it",
        },
        "columns": ["city", "points", "people"],
        "decides_rows": True,
        "fails": "no column is called `city`",
    }  # fmt: skip


def test_plan_names_transforms_that_read_a_column_of_another_type(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "tasks" / "users.yml").write_text(USERS + "    columns: {points: bigint}\n")

    (impact,) = impacts(capsys, folder)

    assert impact["changed"] == {
        "dataset": "shop.users", "column": "points", "what": "int → bigint",
    }  # fmt: skip
    assert (impact["dataset"], impact["columns"], impact["fails"]) == (
        "sales.cities", ["points"], None,
    )  # fmt: skip


def test_plan_names_what_the_source_has_changed_since_the_last_step(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = catalog_in(folder).load_table(("shop_internal", "users_internal"))
    with table.update_schema() as update:
        update.update_column("points", LongType())

    (impact,) = impacts(capsys, folder)

    assert impact["changed"] == {
        "dataset": "shop.users", "column": "points", "what": "int → bigint",
    }  # fmt: skip
    assert impact["columns"] == ["points"]


def test_an_error_is_said_of_the_change_that_makes_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "tasks" / "users.yml").write_text(
        USERS + "    except_columns: [city]\n    columns: {points: bigint}\n"
    )

    fails = {
        one["changed"]["column"]: one["fails"]  # type: ignore[index]
        for one in impacts(capsys, folder)
    }

    assert fails == {"city": "no column is called `city`", "points": None}


def test_plan_names_transforms_over_a_query_that_lost_a_column(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "tasks" / "sales.yml").write_text(SALES.replace(", count(*) AS people", ""))
    (folder / "tasks" / "top.yml").write_text(
        "{apiVersion: polynya/v1, kind: transform, name: top, from: [sales], datasets: [{name: big,"
        " keys: [city], sql: 'SELECT city, points FROM cities WHERE people > 3'}]}"
    )

    (impact,) = impacts(capsys, folder)

    assert impact["changed"] == {
        "dataset": "sales.cities", "column": "people", "what": "the query no longer has it",
    }  # fmt: skip
    assert (impact["dataset"], impact["fails"]) == ("top.big", "no column is called `people`")


def test_plan_names_transforms_that_read_what_a_rule_drops(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "tasks" / "users.yml").write_text(
        USERS + "rules: [{when: {column: name}, drop: true}]\n"
    )

    (impact,) = impacts(capsys, folder)

    assert impact["changed"] == {
        "dataset": "shop.users", "column": "name", "what": "later rows hold NULL in it",
    }  # fmt: skip
    assert (impact["dataset"], impact["columns"]) == ("sales.people", ["name"])
