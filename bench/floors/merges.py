"""Changes on a warm table: from the landed file to applied, by Polynya and by a `MERGE INTO`.

Both read the same landed file in the same session, round after round in turns, and must end with
the same rows.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench.floors.ctas import PROPERTIES
from bench.floors.floor import Measured
from bench.floors.lake import Lake, take_in, work_of
from bench.floors.merge_into import MERGE_ON_READ, merge_into
from bench.floors.records import COLUMNS, SPARK_SCHEMA, Kind, land_changes, land_load
from bench.floors.same import assert_same
from bench.floors.sizes import Sizes
from bench.floors.tasks import task


@dataclass(frozen=True, slots=True)
class Case:
    """A table of `rows` rows of which a file changes `count`. `appends`: the peer keeps the events.

    `at_least` is the floor of the ratio, None for a case that is only to be known.
    """

    name: str
    kind: Kind
    rows: int
    count: int
    at_least: float | None
    warm_up: int
    history: bool = False
    appends: bool = False

    def title(self) -> str:
        """The case as the table calls it."""
        history = ", history" if self.history else ""
        return f"{self.count:,} changes on {self.rows:,} rows{history}"


def cases(sizes: Sizes) -> list[Case]:
    """Small batches, with history and without, then one percent of each table."""
    rows, count, warm_up = sizes.step_rows, sizes.step_records, sizes.step_warm_up
    plain = Case("step", "json", rows, count, None, warm_up, appends=True)
    with_history = replace(plain, name="step_history", at_least=1.0, history=True)
    return [with_history, plain, *(_large(rows, sizes) for rows in sizes.apply_rows)]


def _large(rows: int, sizes: Sizes) -> Case:
    floor = 1.0 if rows < 2_000_000 else 1.5 if rows < 6_000_000 else 2.0
    count = max(1, int(rows * sizes.apply_fraction))
    return Case(f"apply_{rows}", "parquet", rows, count, floor, sizes.warm_up)


def measure(lake: Lake, case: Case, sizes: Sizes) -> Measured:
    """Load a table of each, then let both take in file after file."""
    folder = lake.landing / case.name
    load = land_load(folder / "load", case.kind, rows=case.rows, files=sizes.load_files)
    contenders = (_ours(lake, case), _peer(lake, case, load[0].parent))
    seconds: tuple[list[float], list[float]] = ([], [])
    for version in range(1, case.warm_up + sizes.rounds + 1):
        file = land_changes(
            folder / "changes", case.kind, rows=case.rows, count=case.count, version=version
        )
        # Each is first as often as the other.
        for side in (0, 1) if version % 2 else (1, 0):
            began = time.perf_counter()
            contenders[side](file)
            if version > case.warm_up:
                seconds[side].append(time.perf_counter() - began)
    assert_same(lake.catalog, f"{lake.schema}.{case.name}", f"{lake.peer}.{case.name}")
    shutil.rmtree(folder)
    # The session may be shared: a view of it would be listed in every schema.
    lake.spark.catalog.dropTempView(_events(case))
    appends = "append and " if case.appends else ""
    return Measured(
        case.title(),
        *seconds,
        f"{appends}`MERGE INTO`, merge-on-read",
        case.at_least,
        f"one {case.kind} file a round, from landed to applied in one warm session; median of "
        f"{sizes.rounds} rounds after {case.warm_up}, in turns",
    )


def _ours(lake: Lake, case: Case) -> Callable[[Path], None]:
    """Load the table; the result takes in all that has landed."""
    context = lake.engine()
    declared = task(case.name, case.kind, history=case.history, schema=lake.schema)
    declared["datasets"][0]["columns"] = {"ts": "timestamp"}
    work = work_of(context, declared)
    take_in(context, work)
    return lambda _: take_in(context, work)


def _events(case: Case) -> str:
    """View of the landed file that the peer reads."""
    return f"landed_{case.name}"


def _peer(lake: Lake, case: Case, load: Path) -> Callable[[Path], None]:
    """Load the peer's table; the result takes in one file."""
    spark, name = lake.spark, f"{lake.peer}.{case.name}"
    columns, events = ", ".join(COLUMNS), _events(case)
    read = spark.read.schema(SPARK_SCHEMA).format(case.kind)
    read.load(str(load)).createOrReplaceTempView(events)
    spark.sql(
        f"CREATE TABLE {name} USING iceberg TBLPROPERTIES ({PROPERTIES}, {MERGE_ON_READ}) "
        f"AS SELECT {columns} FROM {events}"
    )
    if case.appends:
        spark.sql(
            f"CREATE TABLE {name}_events ({SPARK_SCHEMA}, file STRING) USING iceberg "
            f"TBLPROPERTIES ({PROPERTIES})"
        )

    def merge(file: Path) -> None:
        read.load(str(file)).createOrReplaceTempView(events)
        batch = events
        if case.appends:
            spark.sql(f"INSERT INTO {name}_events SELECT *, '{file.name}' FROM {events}")
            batch = f"{name}_events WHERE file = '{file.name}'"
        spark.sql(merge_into(name, batch))

    return merge
