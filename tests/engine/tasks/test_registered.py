"""A transform follows tables that others maintain, each at one version, and never writes them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from polynya.engine.answers import Answers, QueryEngine
from polynya.engine.runner import run_once, units
from polynya.lake.read.query import Statement
from polynya.lake.read.registered import reader_of, task_error
from polynya.lake.spark.api import DataFrame, PySparkException
from polynya.lake.spark.catalog import python_catalog
from polynya.model.config.aws import AwsAccess
from polynya.model.config.registered import RegisteredTask
from polynya.model.errors import PolynyaError
from polynya.model.loader import load_project
from polynya.observe.engine import RowsDerived
from tests.engine.tasks.derived_tables import Derived
from tests.lab.lab import Feed, Lab, put


@dataclass
class Registered:
    """A registered task of a lab."""

    lab: Lab
    tables: list[dict[str, Any]]

    @property
    def task(self) -> RegisteredTask:
        """The task as its file says."""
        return RegisteredTask.model_validate(
            {
                "apiVersion": "polynya/v1",
                "kind": "registered",
                "name": f"{self.lab.schema}_others",
                "schema": "crm",
                "tables": self.tables,
            }
        )


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    """A folder of Parquet with the rates of two currencies."""
    folder = tmp_path / "rates"
    write(folder / "1.parquet", [("CHF", 95), ("USD", 110)])
    return folder


def write(file: Path, rows: list[tuple[str, int]]) -> None:
    """A Parquet file of rates, as another engine writes it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    columns = {"currency": [row[0] for row in rows], "rate": [row[1] for row in rows]}
    pq.write_table(pa.table(columns), file)


def content(folder: Path) -> dict[str, str]:
    """Digest of each file below a folder, with its time."""
    return {
        str(file): f"{hashlib.sha256(file.read_bytes()).hexdigest()} {file.stat().st_mtime_ns}"
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@pytest.fixture
def orders(lab: Lab) -> Iterator[Feed]:
    """Orders in two currencies."""
    feed = lab.feed("orders")
    feed.copy(put(1, 1, currency="CHF", amount=2), put(2, 2, currency="USD", amount=3))
    yield feed


CONVERTED = (
    "SELECT o.id, o.amount * r.rate AS cents FROM orders o JOIN crm.rates r "
    "ON r.currency = o.currency"
)


def converted(lab: Lab, orders: Feed, folder: Path, **settings: Any) -> Derived:
    """The orders in one currency."""
    others = Registered(lab, [{"name": "rates", "parquet": str(folder), "keys": ["currency"]}])
    return Derived(lab, [orders, others], CONVERTED, **settings)


def last_step(lab: Lab) -> RowsDerived:
    """What was said of the last step."""
    return [event for event in lab.events if isinstance(event, RowsDerived)][-1]


def test_a_folder_of_parquet_is_followed_and_never_written(
    lab: Lab, orders: Feed, rates: Path
) -> None:
    in_cents = converted(lab, orders, rates, incremental="strict")
    in_cents.follow()
    assert in_cents.current("id", "cents") == [(1, 190), (2, 330)]
    before = content(rates)

    in_cents.follow()
    assert in_cents.steps() == 1
    orders.copy(put(3, 3, currency="USD", amount=1))
    in_cents.follow()
    assert last_step(lab).how == "1 of id"
    assert content(rates) == before

    write(rates / "later" / "2.parquet", [("EUR", 100)])
    orders.copy(put(4, 4, currency="EUR", amount=1))
    in_cents.follow()
    assert in_cents.current("id", "cents") == [(1, 190), (2, 330), (3, 110), (4, 100)]
    assert last_step(lab).how == "1 of id"

    write(rates / "1.parquet", [("CHF", 96), ("USD", 111)])
    in_cents.follow()
    assert in_cents.current("id", "cents") == [(1, 192), (2, 333), (3, 111), (4, 100)]


@pytest.mark.slow
def test_what_is_wrong_with_a_folder_stops_only_the_transforms_that_read_it(
    lab: Lab, orders: Feed, rates: Path
) -> None:
    in_cents = converted(lab, orders, rates)
    in_cents.follow()
    plain = Derived(lab, [orders], "SELECT id, amount FROM orders")
    for name, damage, code in [
        ("2.parquet", b"no Parquet", "POLYNYA-TRF-122"),
        ("_delta_log/0.json", b"{}", "POLYNYA-TRF-122"),
        ("metadata/v1.metadata.json", b"{}", "POLYNYA-TRF-122"),
    ]:
        file = rates / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(damage)
        context = lab.context("never")
        failures = run_once(context, units(context, [in_cents.task, plain.task])).failures
        assert [(name, error.code) for name, error in failures.items()] == [
            (in_cents.dataset.relations.current, code)
        ]
        file.unlink()
    assert plain.current("id", "amount") == [(1, 2), (2, 3)]

    write(rates / "2.parquet", [("USD", 1)])
    with pytest.raises(PolynyaError, match="1 of 2 rows repeat") as repeated:
        in_cents.follow()
    assert repeated.value.code == "POLYNYA-TRF-123"
    for file in rates.glob("*.parquet"):
        file.unlink()
    with pytest.raises(PolynyaError, match="holds no Parquet file") as missing:
        in_cents.follow()
    assert missing.value.code == "POLYNYA-TRF-121"
    assert in_cents.current("id", "cents") == [(1, 190), (2, 330)]


@pytest.fixture
def others_catalog(shared_project: Path) -> Catalog:
    """The catalog as another engine opens it."""
    return python_catalog(load_project(shared_project).target)


def test_an_iceberg_table_of_others_is_read_at_one_snapshot(
    lab: Lab, others_catalog: Catalog
) -> None:
    rows = pa.table({"customer_id": [1, 2], "city": ["Ulm", "Bonn"]})
    others_catalog.create_namespace(f"{lab.schema}_others")
    place = (f"{lab.schema}_others", "customers")
    others = Registered(lab, [{"name": "customers", "iceberg": ".".join(place)}])
    cities = Derived(lab, [others], "SELECT city AS id, count(*) AS n FROM customers GROUP BY city")
    with pytest.raises(PolynyaError, match="the catalog has no table") as missing:
        cities.follow()
    assert missing.value.code == "POLYNYA-TRF-121"

    table: Table = others_catalog.create_table(place, rows.schema)
    cities.follow()
    assert cities.current("id", "n") == []
    table.append(rows)
    cities.follow()
    assert cities.current("id", "n") == [("Bonn", 1), ("Ulm", 1)]
    table.append(pa.table({"customer_id": [3], "city": ["Ulm"]}))
    before, files = table.metadata_location, content(Path(table.location().removeprefix("file:")))
    cities.follow()
    cities.follow()
    assert cities.current("id", "n") == [("Bonn", 1), ("Ulm", 2)]
    assert cities.steps() == 3
    assert others_catalog.load_table(place).metadata_location == before
    assert content(Path(table.location().removeprefix("file:"))) == files


@pytest.mark.slow
def test_a_diamond_reads_a_registered_table_as_its_other_input_has(
    lab: Lab, orders: Feed, rates: Path
) -> None:
    in_cents = converted(lab, orders, rates)
    in_cents.follow()
    others = in_cents.inputs[1]
    both = Derived(
        lab,
        [others, in_cents],
        f"SELECT d.id, d.cents, s.total FROM {in_cents.name} d "
        "CROSS JOIN (SELECT sum(rate) AS total FROM crm.rates) s",
    )
    both.follow()
    assert both.current("id", "cents", "total") == [(1, 190, 205), (2, 330, 205)]

    write(rates / "1.parquet", [("CHF", 96), ("USD", 110)])
    both.follow()
    assert both.current("id", "cents", "total") == [(1, 190, 205), (2, 330, 205)]
    in_cents.follow()
    both.follow()
    assert both.current("id", "cents", "total") == [(1, 192, 206), (2, 330, 206)]


@pytest.mark.slow
def test_a_delta_table_is_followed_version_by_version_and_never_written(
    lab: Lab, orders: Feed, tmp_path: Path
) -> None:
    place = str(tmp_path / "delta")
    write_deltalake(place, pa.table({"currency": ["CHF"], "rate": [95]}), partition_by=["currency"])
    write_deltalake(place, pa.table({"currency": ["USD"], "rate": [110]}), mode="append")
    others = Registered(lab, [{"name": "rates", "delta": place, "keys": ["currency"]}])
    in_cents = Derived(lab, [orders, others], CONVERTED)
    in_cents.follow()
    assert in_cents.current("id", "cents") == [(1, 190), (2, 330)]
    both = Derived(
        lab,
        [others, in_cents],
        f"SELECT d.id, d.cents, s.total FROM {in_cents.name} d "
        "CROSS JOIN (SELECT sum(rate) AS total FROM crm.rates) s",
    )
    both.follow()

    DeltaTable(place).update(predicate="currency = 'CHF'", updates={"rate": "96"})
    before = content(tmp_path / "delta")
    both.follow()
    assert both.current("id", "cents", "total") == [(1, 190, 205), (2, 330, 205)]
    orders.copy(put(3, 3, currency="CHF", amount=1))
    in_cents.follow()
    both.follow()
    assert in_cents.current("id", "cents") == [(1, 192), (2, 330), (3, 96)]
    assert [row[2] for row in both.current("id", "cents", "total")] == [206, 206, 206]
    assert content(tmp_path / "delta") == before

    steps = in_cents.steps()
    DeltaTable(place).optimize.compact()
    in_cents.follow()
    assert in_cents.steps() == steps
    DeltaTable(place).delete("currency = 'USD'")
    in_cents.follow()
    assert in_cents.current("id", "cents") == [(1, 192), (3, 96)]


def test_spark_and_the_embedded_engine_answer_the_same(lab: Lab, rates: Path) -> None:
    others = Registered(lab, [{"name": "rates", "parquet": str(rates)}])
    project = replace(load_project(lab.project, tolerant=True), registered=(others.task,))
    statement = Statement("SELECT r.currency, CRM.rates.rate FROM crm.rates, CRM.rates AS r")
    plain = Statement("SELECT currency, rate FROM crm.rates ORDER BY rate")

    def answered(engine: QueryEngine, asked: Statement) -> list[tuple[Any, ...]]:
        found = Answers(project, lambda: lab.spark, engine=engine).answer(asked)
        return [tuple(row.values()) for batch in found.batches for row in batch.to_pylist()]

    assert answered(QueryEngine.SPARK, plain) == [("CHF", 95), ("USD", 110)]
    assert answered(QueryEngine.EMBEDDED, plain) == [("CHF", 95), ("USD", 110)]
    assert len(answered(QueryEngine.SPARK, statement)) == 4


def test_a_task_says_which_file_it_could_not_read(lab: Lab, rates: Path) -> None:
    (dataset,) = Registered(lab, [{"name": "rates", "parquet": str(rates)}]).task.datasets()
    reader = reader_of(lab.spark, dataset, AwsAccess())

    listed = reader.rows(reader.newest())
    write(rates / "1.parquet", [("CHF", 7)])
    assert said_of(listed) == ("POLYNYA-TRF-124", "crm.rates")

    too_fine = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    pq.write_table(too_fine, rates / "1.parquet")
    assert said_of(reader.rows(reader.newest())) == ("POLYNYA-TRF-122", "crm.rates")


def said_of(rows: DataFrame) -> tuple[str, str | None]:
    """Code and place of the error of rows that cannot be read."""
    with pytest.raises(PySparkException) as failed:
        rows.collect()
    said = task_error(failed.value)
    assert said is not None
    return said.code, said.where
