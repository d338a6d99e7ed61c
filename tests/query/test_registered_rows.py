"""Statements over tables that others maintain, answered without a JVM."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from polynya.cli.doctor import registered_checks
from polynya.derived.plans import OF_REGISTERED, IncrementalPlan
from polynya.engine.answers import Answers, QueryEngine, answer_embedded, view_columns
from polynya.engine.commands.derived_queries import checked_query, step_plan
from polynya.lake.spark.catalog import CATALOG
from polynya.lake.warehouse.catalogs import catalog_file
from polynya.model.config.derived import DerivedTask
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject, load_project
from tests.projects import write_project

CRM = """\
apiVersion: polynya/v1
kind: registered
name: crm
tables:
  - {name: rates, parquet: rates}
  - {name: customers, iceberg: analytics.customers, keys: [id]}
"""
SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [crm]
datasets:
  - {name: whole, sql: "SELECT id, rate FROM rates", keys: [id], incremental: strict}
  - {name: keyed, sql: "SELECT id, city FROM customers", keys: [id]}
"""


@pytest.fixture
def project(tmp_path: Path) -> LoadedProject:
    """A project with a folder of Parquet and an Iceberg table that others write."""
    loaded = load_project(write_project(tmp_path, crm=CRM, sales=SALES))
    for number, (day, rate) in enumerate((("2026-01-01", 95), ("2026-01-02", 96)), 1):
        folder = tmp_path / "rates" / f"day={day}"
        folder.mkdir(parents=True)
        row = f"SELECT {number}::BIGINT AS id, {rate} AS rate"
        duckdb.execute(f"COPY ({row}) TO '{folder}/1.parquet'")
    file = catalog_file(loaded.target)
    assert file is not None
    file.parent.mkdir(parents=True, exist_ok=True)
    warehouse = str(tmp_path / "warehouse")
    catalog = SqlCatalog(CATALOG, uri=f"sqlite:///{file}", warehouse=warehouse)
    catalog.create_namespace("analytics")
    rows = pa.table({"id": [1, 2, 3], "city": ["Ulm", "Bonn", "Ulm"]})
    table = catalog.create_table("analytics.customers", rows.schema)
    table.append(rows)
    table.delete("id = 3")
    return loaded


def answered(project: LoadedProject, statement: str) -> list[dict[str, object]]:
    """The rows of a statement."""
    schema, batches = answer_embedded(project, statement)
    return pa.Table.from_batches(batches, schema).to_pylist()


def test_a_folder_of_parquet_has_the_columns_of_its_files_and_of_its_folders(
    project: LoadedProject,
) -> None:
    assert answered(project, "SELECT day, rate + 1 AS more FROM crm.rates ORDER BY day") == [
        {"day": "2026-01-01", "more": 96},
        {"day": "2026-01-02", "more": 97},
    ]
    assert answered(project, "SELECT count(*) AS n FROM crm.rates") == [{"n": 2}]
    assert view_columns(project, "crm.rates") == ["day", "id", "rate"]
    views = Answers(project, pytest.fail, engine=QueryEngine.EMBEDDED).views()
    assert views == ["crm.customers", "crm.rates"]


def test_an_iceberg_table_is_read_without_its_deleted_rows(project: LoadedProject) -> None:
    joined = answered(
        project,
        "SELECT c.city, r.rate FROM crm.customers c JOIN crm.rates r ON r.id = c.id ORDER BY r.id",
    )
    assert joined == [{"city": "Ulm", "rate": 95}, {"city": "Bonn", "rate": 96}]
    assert answered(project, "SELECT count(*) AS n FROM crm.customers") == [{"n": 2}]


def test_a_missing_table_is_an_error_by_name(project: LoadedProject) -> None:
    for file in (project.directory / "rates").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(PolynyaError, match="holds no Parquet file") as missing:
        answered(project, "SELECT * FROM crm.rates")
    assert missing.value.code == "POLYNYA-TRF-121"


def test_doctor_says_what_it_finds_of_each_table(project: LoadedProject) -> None:
    found = [(check.name, check.status, check.detail) for check in registered_checks(project)]
    assert [one[:2] for one in found] == [
        ("registered crm.rates", "ok"),
        ("registered crm.customers", "ok"),
    ]
    assert found[0][2] == "2 files of Parquet, 3 columns"
    assert found[1][2].startswith("snapshot ")

    (project.directory / "rates" / "x.parquet").write_text("no Parquet")
    (damaged, _) = registered_checks(project)
    assert damaged.status == "fail"
    assert "x.parquet" in damaged.detail


def test_plan_tells_how_a_step_over_registered_tables_is_restricted(project: LoadedProject) -> None:
    (task,) = project.tasks
    assert isinstance(task, DerivedTask)
    assert step_plan(task, "whole", checked_query(project, task, "whole").over) is OF_REGISTERED
    keyed = step_plan(task, "keyed", checked_query(project, task, "keyed").over)
    assert isinstance(keyed, IncrementalPlan)
    assert keyed.columns == ("id",)

    shutil.rmtree(project.directory / "rates")
    assert step_plan(task, "whole", checked_query(project, task, "whole").over) is None
    assert isinstance(
        step_plan(task, "keyed", checked_query(project, task, "keyed").over), IncrementalPlan
    )
