"""Changes of 1 % of an input, followed by a transform, against the same query as a whole.

Prints for a query that maps rows, one that joins two tables and one that groups them: the seconds
of the first step, of a step that computes the affected rows, of a step that computes all, and of a
hand-written `CREATE OR REPLACE TABLE ... AS SELECT` in the same Spark session, with medians of the
rounds; and the seconds of the ordinary apply of the same changes to their table. A round before
them does not count. `POLYNYA_BENCH_ROWS`, `POLYNYA_BENCH_FRACTION` and `POLYNYA_BENCH_ROUNDS` set
the sizes; without `POLYNYA_BENCH_ALL`, steps that compute all are left out.

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
from polynya.engine.policy import ApplyMode
from polynya.engine.runner import run_once, units
from polynya.lake.spark.api import SparkSession
from polynya.model.config.derived import TransformTask
from polynya.model.config.settings import DatasetSettings
from polynya.model.config.task import StorageTask
from polynya.model.project_derived import as_derived
from polynya.observe.engine import DatasetApplied, RowsDerived
from polynya.observe.events import Event
from polynya.store.object_store import LocalObjectStore

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "2000000"))
FRACTION = float(os.environ.get("POLYNYA_BENCH_FRACTION", "0.01"))
ALL = bool(os.environ.get("POLYNYA_BENCH_ALL"))
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


def run(
    spark: SparkSession, landing: Path, task: StorageTask, apply_mode: ApplyMode = "never"
) -> float:
    """Take the steps of a task; seconds of the steps of its derived table, or else of applies."""
    told: list[Event] = []
    context = EngineContext(
        spark=spark, landing=LocalObjectStore(landing), sink=told.append, apply_mode=apply_mode
    )
    for failure in run_once(context, units(context, [task])).failures.values():
        raise failure
    return sum(event.seconds for event in told if isinstance(event, RowsDerived | DatasetApplied))


def rebuild(spark: SparkSession, name: str) -> float:
    """Seconds of the query as a table that is replaced, from the live views."""
    before = time.monotonic()
    spark.sql(f"CREATE OR REPLACE TABLE polynya.rebuilt.{name} USING iceberg AS {QUERIES[name][0]}")
    return time.monotonic() - before


def say(text: str) -> None:
    """Print a line at once: a run takes minutes."""
    print(text, flush=True)


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
        run(spark, landing, SOURCES, "always")
        spark.sql("CREATE NAMESPACE IF NOT EXISTS polynya.rebuilt")
        ways = {"affected": "strict"} | ({"all": "full"} if ALL else {})
        say(f"{ROWS:,} orders, {FRACTION:.1%} changed, {os.cpu_count()} cores, {ROUNDS} rounds")
        tasks = {(n, way): derived_by(how, n) for n in QUERIES for way, how in ways.items()}
        seconds: dict[tuple[str, str], list[float]] = {}
        for (name, way), task in tasks.items():
            seconds[name, f"first, {way}"] = [run(spark, landing, task)]
            say(f"{name}: first step {seconds[name, f'first, {way}'][0]:.1f} s ({way})")
        for round_ in range(1, ROUNDS + 2):
            changed = range(round_, ROWS, round(1 / FRACTION))
            land(landing / f"shop/orders/{round_}.parquet", **orders(list(changed), round_))
            run(spark, landing, SOURCES)
            took = {place: run(spark, landing, task) for place, task in tasks.items()}
            took |= {(name, "rebuilt"): rebuild(spark, name) for name in QUERIES}
            took["orders", "applied"] = run(spark, landing, SOURCES, "always")
            say(", ".join(f"{name} {way} {one:.2f}" for (name, way), one in took.items()))
            if round_ > 1:
                for place, one in took.items():
                    seconds.setdefault(place, []).append(one)
        medians = {place: median(several) for place, several in seconds.items()}
        applied = medians["orders", "applied"]
        say(f"apply of the same changes {applied:.2f} s")
        for name in QUERIES:
            affected, rebuilt = medians[name, "affected"], medians[name, "rebuilt"]
            first = medians[name, "first, affected"]
            text = f"{name}: affected {affected:.2f} s, rebuilt {rebuilt:.2f} s"
            text += f"; {affected / rebuilt:.2f} of rebuilt, {affected / applied:.2f} of the apply"
            if (name, "all") in medians:
                whole = medians[name, "all"]
                text += f"; all {whole:.2f} s, {affected / whole:.2f} of it"
            say(f"{text}; first step {first:.1f} s, {first / rebuilt:.1f} times rebuilt")
        chained = follow_chain(spark, landing, ROUNDS + 2)
        say(f"{CHAINED:,} changes through a chain of three: {median(chained):.1f} s")


if __name__ == "__main__":
    main()
