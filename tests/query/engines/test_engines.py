"""Each engine shows the rows and types that Spark shows, in every view, before and after an apply.

The shapes are those of the conformance cases, and datasets of all types. Two of them run on every
push, all of them, Trino and the stand-in for Snowflake in `make test-slow`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from examples.servers.mariadb import UnavailableError
from examples.servers.snowflake import environment
from examples.servers.trino import TrinoServer
from polynya.lake.apply import records
from polynya.lake.spark.api import SparkSession
from polynya.query import live_rows
from tests.absent import absent
from tests.docs.pages import ROOT
from tests.lab.commands import InProcessDriver
from tests.lab.trino import running_trino
from tests.oracle.packs.conformance import groups
from tests.oracle.packs.pack import Landing, Pack
from tests.query.engines.compare import Compared, compared, difference
from tests.query.engines.differences import DIFFERENCES
from tests.query.engines.engines import (
    EMBEDDED,
    POLARS,
    PYTHON,
    Engine,
    Read,
    View,
    duckdb_engine,
    spark_engine,
    trino_engine,
    trino_printed,
    views_of,
)
from tests.query.engines.snowflake import NAME as SNOWFLAKE
from tests.query.engines.snowflake import snowflake_engine
from tests.query.test_answers import FULL
from tests.query.test_dialects_spark import TYPES

pytestmark = pytest.mark.spark
WITHOUT_JVM: Final = (EMBEDDED, PYTHON, POLARS)
QUICK: Final = ("DuckDB", *(engine.name for engine in WITHOUT_JVM))
#: The Iceberg views, and those that `polynya views` prints.
TRINO: Final = ("Trino", "Trino with printed views")
#: Of the conformance cases on every push: 17 cases of history, with late events and deletes.
FEW: Final = ("given.g02",)
#: How a run applies before each comparison.
MOMENTS: Final = {"pending": "never", "applied": "always"}
#: Views that readers without a JVM leave to Spark, by why (`REFUSED` in `engines.py`).
LEFT_TO_SPARK: Final = {
    "pending": {
        "given.g02", "given.g02__history", "given.g09", "given.g07__history",
        "kinds.times__history",
    },
    "applied": {"given.g07__history"},
}  # fmt: skip
#: The dataset with a pending delete, whose views get a planted fault.
FAULTY: Final = "kinds.types"
_PLAIN: Final = {
    "sequence_by": ["n"], "apply_as_deletes": "op = 'D'", "except_columns": ["op", "n"],
    "optional_columns": ["op"],
}  # fmt: skip


@dataclass
class Outcome:
    """What was found by moment and engine, and with a fault planted in each engine."""

    views: set[str] = field(default_factory=set)
    rows: dict[str, int] = field(default_factory=dict)
    found: dict[tuple[str, str], Compared] = field(default_factory=dict)
    planted: dict[str, Compared] = field(default_factory=dict)


def kinds() -> list[Landing]:
    """A dataset with a column of each type, and one whose key is a time."""
    columns = {name: kind for name, kind in TYPES.items() if name != "seq"}
    full = {name: value for name, value in FULL.items() if name != "ratio"}
    every = [
        [{"id": 1, "n": 1, **full}, {"id": 2, "n": 2, **full}, {"id": 3, "n": 3, "tags": []}],
        [
            {"id": 1, "n": 10, **full, "amount": "-0.0001", "day": "0001-01-01", "op": "U"},
            {"id": 2, "n": 11, "op": "D"},
            {"id": 4, "n": 12, **full, "happened": "1969-12-31T23:59:59.999999Z", "v": False},
        ],
    ]
    first, second = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00.000001Z"
    times = [
        [{"at": first, "v": 1, "n": 1}, {"at": second, "v": 2, "n": 2}],
        [{"at": first, "v": 3, "n": 3, "op": "U"}, {"at": second, "n": 4, "op": "D"}],
    ]
    by_time = {"columns": {"at": "timestamp"}, "keys": ["at"], "history": True, **_PLAIN}
    by_number = {"columns": columns, "keys": ["id"], "history": True, **_PLAIN}
    return [Landing("kinds", "types", every, by_number), Landing("kinds", "times", times, by_time)]


def halves(landing: Landing) -> Landing:
    """The dataset with its records in two steps, so that each has something applied and pending."""
    lines = [line for step in landing.steps for line in step]
    middle = (len(lines) + 1) // 2
    return replace(landing, steps=[lines[:middle], lines[middle:]])


def outcome_of(
    directory: Path,
    landings: Sequence[Landing],
    spark: SparkSession,
    *,
    more: Sequence[Engine] = (),
    faulty: Sequence[Engine] = (),
) -> Outcome:
    """Apply a half of the records, copy the other and compare; apply it too, and compare again.

    `more` are engines beside the quick ones, `faulty` those of them with a planted fault.
    """
    pack, driver = Pack(directory, landings), InProcessDriver(spark)
    pack.write_project()
    pack.land(0)
    driver.run_project(directory, "always")
    pack.land(1)
    outcome = Outcome()
    for moment, apply in MOMENTS.items():
        driver.run_project(directory, apply)
        wanted = _read(spark_engine(spark), directory)
        outcome.views = {f"{view.schema}.{view.name}" for view in wanted}
        outcome.rows[moment] = sum(table.num_rows for table in wanted.values())
        for engine in (duckdb_engine(), *WITHOUT_JVM, *more):
            outcome.found[moment, engine.name] = compared(engine, directory, wanted)
        if moment == "pending":
            # A pending delete deletes nothing.
            quick = (duckdb_engine(mistranslated), *map(_planted, WITHOUT_JVM))
            for engine in (*quick, *faulty):
                outcome.planted[engine.name] = compared(engine, directory, _few(wanted))
    return outcome


def _read(engine: Engine, directory: Path) -> dict[View, pa.Table]:
    views = views_of(directory)
    with engine.open(directory) as read:
        shown = {view: read(view) for view in views}
    return {view: table for view, table in shown.items() if table is not None}


def mistranslated(text: str) -> str:
    """A view that shows the records which pending changes delete."""
    return re.sub(r'NOT ("?)__del\1(?!\w)', "TRUE", text)


def _planted(engine: Engine) -> Engine:
    """An engine of this process, which writes the text of its views itself, or needs none."""

    @contextmanager
    def opened(directory: Path) -> Iterator[Read]:
        with pytest.MonkeyPatch.context() as patch, engine.open(directory) as read:
            real = live_rows.definitions
            patch.setattr(
                live_rows,
                "definitions",
                lambda *of: {name: mistranslated(text) for name, text in real(*of).items()},
            )
            patch.setattr(records, "DELETES", pa.array([], pa.string()))
            yield read

    return replace(engine, open=opened)


def _few(wanted: dict[View, pa.Table]) -> dict[View, pa.Table]:
    return {view: table for view, table in wanted.items() if view.dataset == FAULTY}


def conformance(only: Sequence[str] = ()) -> list[Landing]:
    """Datasets of the conformance cases, a shape each; `only` these."""
    every = groups("given", alone=False)
    return [halves(one.landing()) for one in every if not only or one.view in only]


@pytest.fixture(scope="module")
def few(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A shape of the conformance cases and all types, without Trino."""
    landings = [*conformance(FEW), *kinds()[:1]]
    return outcome_of(tmp_path_factory.mktemp("few"), landings, spark)


@pytest.fixture(scope="module")
def trino() -> Iterator[TrinoServer]:
    """A server that runs; without one the tests are skipped, in CI failed."""
    with running_trino() as server:
        yield server


@pytest.fixture(scope="module")
def snowflake_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For the log of the stand-in; where it cannot be had the tests are skipped, in CI failed."""
    if find_spec("snowflake.connector") is None:
        absent("the extra `snowflake` is not installed")
    try:
        environment()
    except UnavailableError as error:
        absent(str(error))
    return tmp_path_factory.mktemp("snowflake")


@pytest.fixture(scope="module")
def every(
    spark: SparkSession,
    trino: TrinoServer,
    snowflake_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Outcome:
    """All shapes and all types, with Trino and the stand-in for Snowflake."""
    return outcome_of(
        tmp_path_factory.mktemp("every"),
        [*conformance(), *kinds()],
        spark,
        more=[trino_engine(trino), trino_printed(trino), snowflake_engine(snowflake_folder)],
        faulty=[
            trino_printed(trino, mistranslated),
            snowflake_engine(snowflake_folder, mistranslated),
        ],
    )


def assert_same(outcome: Outcome, moment: str, engine: str) -> None:
    found = outcome.found[moment, engine]
    left = {one.name for one in WITHOUT_JVM if one.name == engine}
    assert found.different == []
    assert found.refused == (LEFT_TO_SPARK[moment] & outcome.views if left else set())
    assert outcome.rows[moment] > len(outcome.views)


@pytest.mark.parametrize("engine", QUICK)
@pytest.mark.parametrize("moment", MOMENTS)
def test_engines_show_what_spark_shows(few: Outcome, moment: str, engine: str) -> None:
    assert_same(few, moment, engine)


@pytest.mark.parametrize("engine", QUICK)
def test_a_mistranslation_is_found(few: Outcome, engine: str) -> None:
    [found] = [text for text in few.planted[engine].different if "types: " in text]
    assert "has [" in found


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", [*QUICK, *TRINO, SNOWFLAKE])
@pytest.mark.parametrize("moment", MOMENTS)
def test_every_shape_in_every_engine(every: Outcome, moment: str, engine: str) -> None:
    assert_same(every, moment, engine)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["Trino with printed views", SNOWFLAKE])
def test_a_mistranslation_for_a_server_is_found(every: Outcome, engine: str) -> None:
    assert every.planted[engine].different


def test_the_page_has_each_known_difference() -> None:
    page = (ROOT / "docs" / "other-engines.md").read_text("utf-8")
    _, _, section = page.partition("\n## What each engine shows differently\n")
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| ")]

    compared_ = [one.line for one in DIFFERENCES]
    assert [line for line in compared_ if line not in lines] == []
    # Lines of the page that no test compares say so.
    assert [
        line for line in lines[1:] if line not in compared_ and "not compared" not in line
    ] == []


def test_rows_and_types_that_differ_are_told() -> None:
    wanted = pa.table({"id": pa.array([1, 2], pa.int32())})

    assert difference(wanted, pa.table({"id": pa.array([2, 1], pa.int32())})) == []
    assert difference(wanted, pa.table({"id": pa.array([2, 2], pa.int32())})) == [
        "lacks [1]", "has [2]"
    ]  # fmt: skip
    assert difference(wanted, pa.table({"id": [1, 2]})) == [
        "columns ['id int64'] instead of ['id int32']"
    ]
