"""Tables that others maintain, as files name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.derived.query_errors import query_errors
from polynya.model.errors import ConfigErrors
from polynya.model.loader import LoadedProject, load_project
from tests.projects import USERS, write_project

CRM = """\
apiVersion: polynya/v1
kind: registered
name: crm
tables:
  - {name: customers, iceberg: analytics.customers, keys: [customer_id]}
  - {name: rates, parquet: s3://bucket/rates/}
  - {name: days, parquet: calendar/days}
"""
SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [users, crm]
datasets:
  - {name: people, sql: "SELECT c.customer_id AS id FROM QUERY", keys: [id]}
"""


def loaded(tmp_path: Path, crm: str = CRM, query: str = "crm.customers c", **more: str):
    """The project with a registered task and a transform over it."""
    sales = SALES.replace("QUERY", query)
    return load_project(write_project(tmp_path, users=USERS, crm=crm, sales=sales, **more))


def errors_of(tmp_path: Path, crm: str, **more: str) -> list[str]:
    """What is wrong with a project, with code and place."""
    with pytest.raises(ConfigErrors) as caught:
        loaded(tmp_path, crm, **more)
    return [f"{error.code} {error.where} {error.message}" for error in caught.value.errors]


def test_a_transform_reads_them_by_name_and_they_are_no_work(tmp_path: Path) -> None:
    project: LoadedProject = loaded(
        tmp_path, query="crm.customers c JOIN rates JOIN days JOIN users"
    )
    assert query_errors(project) == []
    assert [task.name for task in project.works] == ["users", "sales"]
    (crm,) = project.registered
    assert [dataset.table.source for dataset in crm.datasets()] == [
        "analytics.customers", "s3://bucket/rates", str(tmp_path / "calendar" / "days")
    ]  # fmt: skip


def test_an_unknown_table_of_a_query_is_named_with_what_there_is(tmp_path: Path) -> None:
    (error,) = query_errors(loaded(tmp_path, query="crm.custmers c"))
    assert error.code == "POLYNYA-TRF-076"
    assert "crm.customers" in (error.fix or "")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("{name: a}", "needs one of `iceberg`, `parquet` and `delta`"),
        ("{name: a, iceberg: b.c, parquet: d}", "needs one of `iceberg`, `parquet` and `delta`"),
        ("{name: a, delta: b, parquet: d}", "needs one of `iceberg`, `parquet` and `delta`"),
        ("{name: a, delta: 's3://bucket/a/../b'}", ".."),
        ("{name: a, iceberg: customers}", "iceberg"),
        ("{name: a, iceberg: a.b.c}", "iceberg"),
        ("{name: a, parquet: 'https://host/rates'}", "neither a local folder nor on S3"),
        ("{name: a, parquet: 's3://bucket/a/../b'}", ".."),
        ("{name: a, parquet: rates, changed_by: at}", "`changed_by` needs `keys`"),
        ("{name: a, iceberg: shop_internal.users_internal}", "POLYNYA-TRF-120"),
        ("{name: a, iceberg: shop.USERS}", "POLYNYA-TRF-120"),
    ],
)
def test_a_table_that_cannot_be_is_refused_at_its_place(
    tmp_path: Path, table: str, message: str
) -> None:
    head = CRM.partition("  - ")[0]
    errors = errors_of(tmp_path, f"{head}  - {table}\n")
    assert any(message in error and "tasks/crm.yml:5:" in error for error in errors), errors


def test_what_reads_a_refused_table_goes_with_it(tmp_path: Path) -> None:
    crm = CRM.replace("analytics.customers", "shop_internal.users_internal")
    folder = write_project(tmp_path, users=USERS, crm=crm, sales=SALES.replace("QUERY", "users"))
    project = load_project(folder, tolerant=True)
    assert [error.code for error in project.errors] == ["POLYNYA-TRF-120"]
    assert [task.name for task in project.works] == ["users"]
    assert project.registered == ()


@pytest.mark.parametrize("schema", ["shop", "SHOP"])
def test_a_name_belongs_to_one_table(tmp_path: Path, schema: str) -> None:
    crm = CRM.replace("name: crm\n", f"name: crm\nschema: {schema}\n").replace(
        "name: days", "name: users"
    )
    errors = errors_of(tmp_path, crm)
    assert any("shop.users" in error and "tasks/crm.yml" in error for error in errors), errors
    twice = CRM.replace("name: days", "name: rates")
    assert any("crm.rates" in error for error in errors_of(tmp_path, twice))
