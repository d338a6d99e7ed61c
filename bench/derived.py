"""Changes of 1 % of an input, followed by a transform, against the same query as a whole.

Prints for a query that maps rows, one that joins two tables and one that groups them: the seconds
of a step that computes the affected rows, of a step that computes all, and of a hand-written
`CREATE OR REPLACE TABLE ... AS SELECT` in the same Spark session, with medians of the rounds.
`POLYNYA_BENCH_ROWS`, `POLYNYA_BENCH_FRACTION` and `POLYNYA_BENCH_ROUNDS` set the sizes.

Then 1,000 changed rows go through a chain of three transforms that maps, joins and groups: the
seconds from the landed file until the last of them shows the changes.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.session import session_in
from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once, units
from polynya.lake.spark.api import SparkSession
from polynya.model.config.derived import TransformTask
from polynya.model.config.settings import DatasetSettings
from polynya.model.config.task import StorageTask
from polynya.model.project_derived import as_derived
from polynya.observe.engine import RowsDerived
from polynya.observe.events import Event
from polynya.store.object_store import LocalObjectStore

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "2000000"))
FRACTION = float(os.environ.get("POLYNYA_BENCH_FRACTION", "0.01"))
ROUNDS = int(os.environ.get("POLYNYA_BENCH_ROUNDS", "3"))
CUSTOMERS = max(1, ROWS // 20)
CHAINED = 1_000
SOURCES = StorageTask.model_validate(
    {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": "shop",
        "schema": "shop",
        "landing": {"path": "shop", "format": "parquet"},
        "datasets": [
            {"name": "customers", "path": "customers/*", "keys": ["id"], "sequence_by": ["seq"]},
            {"name": "orders", "path": "orders/*", "keys": ["id"], "sequence_by": ["seq"]},
        ],
    }
)
QUERIES: dict[str, tuple[str, list[str]]] = {
    "map": (
        "SELECT id, customer, upper(status) AS status, amount * 1.19D AS gross FROM shop.orders",
        ["id"],
    ),
    "join": (
        """SELECT o.id, o.amount, o.status, c.name, c.city
        FROM shop.orders o JOIN shop.customers c ON c.id = o.customer""",
        ["id"],
    ),
    "groups": (
        """SELECT o.customer, c.city, count(*) AS orders, sum(o.amount) AS total
        FROM shop.orders o JOIN shop.customers c ON c.id = o.customer
        GROUP BY o.customer, c.city""",
        ["customer"],
    ),
}


#: The tables of the chain: each reads the one before it.
CHAIN: dict[str, tuple[str, list[str]]] = {
    "mapped": (
        "SELECT id, customer, upper(status) AS status, amount * 1.19D AS gross FROM shop.orders",
        ["id"],
    ),
    "joined": (
        """SELECT m.id, m.customer, m.gross, c.city
        FROM chain_mapped.mapped m JOIN shop.customers c ON c.id = m.customer""",
        ["id"],
    ),
    "grouped": (
        """SELECT customer, count(*) AS orders, sum(gross) AS total
        FROM chain_joined.joined GROUP BY customer""",
        ["customer"],
    ),
}


def land(path: Path, **columns: Any) -> None:
    """Write one file of a landing at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".tmp")
    pq.write_table(pa.table(columns), partial)
    partial.rename(path)


def orders(ids: list[int], round_: int) -> dict[str, Any]:
    """Orders with these ids; each round gives them other amounts."""
    return {
        "id": pa.array(ids, pa.int64()),
        "customer": pa.array([one * 7919 % CUSTOMERS for one in ids], pa.int64()),
        "status": [("open", "paid", "sent")[(one + round_) % 3] for one in ids],
        "amount": [float((one + round_) % 1000) for one in ids],
        "note": [f"order {one} of round {round_}, by the usual way" for one in ids],
        "seq": pa.array([round_] * len(ids), pa.int64()),
    }


def derived_by(incremental: str, name: str) -> StorageTask:
    """The transform of one query, which is followed one way."""
    sql, keys = QUERIES[name]
    task = TransformTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "transform",
            "name": f"{incremental}_{name}",
            "from": ["shop"],
            "datasets": [{"name": name, "sql": sql, "keys": keys, "incremental": incremental}],
        }
    )
    made = as_derived(task, {"shop": SOURCES}, DatasetSettings(), Path())
    assert isinstance(made, StorageTask), made
    return made


def chain() -> list[StorageTask]:
    """The transforms of the chain, in their order."""
    known: dict[str, StorageTask] = {"shop": SOURCES}
    for name, (sql, keys) in CHAIN.items():
        task = TransformTask.model_validate(
            {
                "apiVersion": "polynya/v1",
                "kind": "transform",
                "name": f"chain_{name}",
                "from": list(known),
                "datasets": [{"name": name, "sql": sql, "keys": keys, "incremental": "strict"}],
            }
        )
        made = as_derived(task, known, DatasetSettings(), Path())
        assert isinstance(made, StorageTask), made
        known[task.name] = made
    return list(known.values())[1:]


def follow_chain(spark: SparkSession, landing: Path, first: int) -> list[float]:
    """Seconds of runs that take `CHAINED` changes of orders through the chain, after a first one.

    Their landed files have numbers from `first` on.
    """
    context = EngineContext(spark=spark, landing=LocalObjectStore(landing), apply_mode="policy")
    work = units(context, [SOURCES, *chain()])
    seconds = []
    for number in range(first, first + ROUNDS + 2):
        began = time.monotonic()
        for failure in run_once(context, work).failures.values():
            raise failure
        seconds.append(time.monotonic() - began)
        changed = range(number, ROWS, max(1, ROWS // CHAINED))
        land(landing / f"shop/orders/{number}.parquet", **orders(list(changed), number))
    # The first run computes all, the second one opens what later ones know.
    return seconds[2:]


def run(spark: SparkSession, landing: Path, task: StorageTask) -> float:
    """Take the steps of a task; seconds of the step of its derived table, if it has one."""
    told: list[Event] = []
    context = EngineContext(
        spark=spark, landing=LocalObjectStore(landing), sink=told.append, apply_mode="policy"
    )
    for failure in run_once(context, units(context, [task])).failures.values():
        raise failure
    return sum(event.seconds for event in told if isinstance(event, RowsDerived))


def rebuild(spark: SparkSession, name: str) -> float:
    """Seconds of the query as a table that is replaced, from the live views."""
    before = time.monotonic()
    spark.sql(f"CREATE OR REPLACE TABLE polynya.rebuilt.{name} USING iceberg AS {QUERIES[name][0]}")
    return time.monotonic() - before


def main() -> None:
    """Follow some rounds of changes, and print what each way took."""
    with tempfile.TemporaryDirectory() as folder:
        spark = session_in(folder)
        landing = Path(folder) / "landing"
        ids = list(range(CUSTOMERS))
        cities = [f"city-{one % 300}" for one in ids]
        names = [f"customer {one}" for one in ids]
        land(
            landing / "shop/customers/0.parquet",
            id=ids,
            name=names,
            city=cities,
            seq=[0] * len(ids),
        )
        land(landing / "shop/orders/0.parquet", **orders(list(range(ROWS)), 0))
        run(spark, landing, SOURCES)
        spark.sql("CREATE NAMESPACE IF NOT EXISTS polynya.rebuilt")
        ways = {"affected": "strict", "all": "full"}
        tasks = {(n, way): derived_by(how, n) for n in QUERIES for way, how in ways.items()}
        for task in tasks.values():
            run(spark, landing, task)
        seconds: dict[tuple[str, str], list[float]] = {}
        for round_ in range(1, ROUNDS + 1):
            changed = range(round_, ROWS, round(1 / FRACTION))
            land(landing / f"shop/orders/{round_}.parquet", **orders(list(changed), round_))
            run(spark, landing, SOURCES)
            for place, task in tasks.items():
                seconds.setdefault(place, []).append(run(spark, landing, task))
            for name in QUERIES:
                seconds.setdefault((name, "rebuilt"), []).append(rebuild(spark, name))
        print(f"{ROWS:,} orders, {FRACTION:.1%} changed, {os.cpu_count()} cores, {ROUNDS} rounds")
        for name in QUERIES:
            affected, whole, rebuilt = (
                median(seconds[name, way]) for way in ("affected", "all", "rebuilt")
            )
            print(
                f"{name}: affected {affected:.1f} s, all {whole:.1f} s, rebuilt {rebuilt:.1f} s; "
                f"{affected / whole:.2f} of all, {affected / rebuilt:.2f} of rebuilt"
            )
        chained = follow_chain(spark, landing, ROUNDS + 1)
        print(f"{CHAINED:,} changes through a chain of three: {median(chained):.1f} s")


if __name__ == "__main__":
    main()
