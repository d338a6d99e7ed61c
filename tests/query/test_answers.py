"""The embedded engine gives the rows, names and types that Spark gives, or leaves it to Spark."""

from __future__ import annotations

import gc
import itertools
import math
import random
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from py4j.java_gateway import JavaObject

from polynya.engine.answers import Answers, QueryEngine, answer_embedded
from polynya.lake.fold.shape import Shape
from polynya.lake.read.query import Statement, answer
from polynya.model.loader import LoadedProject, load_project
from polynya.model.types import INT, parse_type
from polynya.query import live_rows
from polynya.query import values as calls
from polynya.query.embedded import STATEMENT_LIMITS
from polynya.query.live_rows import check_fold, live_view
from polynya.query.translate import NotEmbeddedError
from polynya.query.values import EmbeddedValue
from tests.lab.lab import Feed, Lab, drop, put
from tests.query.test_dialects_spark import TYPES

pytestmark = pytest.mark.usefixtures("sliced_batches")

FULL = {
    "day": "2026-02-03", "amount": "1234567890123456.7891", "happened": "2026-01-01T00:00:01.5Z",
    "blob": "AAEC/w==", "tags": ["a", None], "spot": {"x": 1.5, "ok": None},
    "flags": {"k": 1, "l": None}, "v": True, "name": "it's \u00e9 \"q\"", "ratio": 0.1,
}  # fmt: skip


def project_of(*feeds: Feed) -> LoadedProject:
    """The project of the lab with the tasks of these feeds."""
    loaded = load_project(feeds[0].lab.project, tolerant=True)
    return replace(loaded, tasks=tuple(feed.task for feed in feeds))


def assert_same(project: LoadedProject, lab: Lab, statement: str, *, ordered: bool = False) -> int:
    """Compare names, types and rows of both engines; return the number of rows.

    The embedded engine answers twice: over rows of Arrow, and over files that DuckDB reads itself.
    """
    lab.spark.conf.set("spark.sql.caseSensitive", "false")
    try:
        wanted = answer(lab.spark, Statement(statement))
        rows = [tuple(row.values()) for batch in wanted.batches for row in _rows(batch)]
    finally:
        lab.spark.conf.set("spark.sql.caseSensitive", "true")
    rows = rows if ordered else sorted(rows, key=repr)
    for least_rows in (10**9, 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(live_rows, "_LEAST_FILE_ROWS", least_rows)
            schema, batches = answer_embedded(project, statement)
        assert schema.names == wanted.schema.names, statement
        assert schema.types == wanted.schema.types, statement
        found = [tuple(row.values()) for batch in batches for row in _rows(batch)]
        found = found if ordered else sorted(found, key=repr)
        assert list(map(repr, found)) == list(map(repr, rows)), statement
    return len(rows)


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    # By number: two columns may have one name.
    return batch.rename_columns([str(n) for n in range(batch.num_columns)]).to_pylist()


TRUTHS = (
    "id = n", "n <> 3", "n < id", "n >= 2147483647", "id <=> n", "NOT n = 1", "n IN (1, 2, -3)",
    "n NOT IN (1)", "n BETWEEN 0 AND 7", "n IS NULL", "n IS NOT NULL", "n = 1 OR v", "n = 1 AND v",
    "amount > 0", "amount = 1234567890123456.7891", "amount < -0.5", "amount IN (0.0001, 2)",
    "name = \"it's \u00e9\"", "name < 'n'", "name LIKE '%a_%'", "name LIKE '__'",
    "name NOT LIKE 'N%'",
    "day = '2026-02-03'", "day >= DATE '1582-10-04'", "day BETWEEN '1900-01-01' AND '2026-02-03'",
    "happened > '2026-01-01 00:00:00'", "happened = TIMESTAMP '2026-01-01 00:00:01.5'",
    "happened < '1969-12-31T23:59:59.999999Z'", "zoneless = '1999-12-31 23:59:59'",
    "ratio > 0", "ratio = 0.1", "ratio < -0.5", "ratio = other", "ratio < other", "blob = blob",
    "v",
)  # fmt: skip
NUMBERS = ("n * 2", "n - 2", "-n", "length(name)", "year(day)", "ifnull(n, 0)", "day(day)")
TEXTS = ("name || '!'", "concat(name, '-', name)", "coalesce(name, 'none')", "nullif(name, 'Nn')")
OTHERS = (
    "id + 1", "(id + n) * 3 - 1", "CAST(n AS BIGINT)", "CAST(id AS STRING)", "month(day)",
    "CAST(happened AS DATE)", "to_date(happened)", "CASE WHEN v THEN day ELSE NULL END",
    "n / id", "id / n", "if(v, n, 0)", "if(n > 1, name, NULL)", "nvl(name, 'x')",
    "substring(name, 2, 2)", "substr(name, 1)", "round(amount, 2)", "round(amount)", "amount * 2",
    "amount - 1.25", "amount + n", "datediff(day, DATE '2026-01-01')", "CAST(n AS double)",
    "CAST(n AS decimal(12,1))", "CAST(amount AS decimal(24,5))", "n * 1234567890123.25",
    "day IN ('2026-02-03', '1582-10-04')", "-2147483648", "coalesce(n)",
    "ratio * 1.19D", "ratio + other", "other - ratio", "ratio * n", "ratio / other", "n / ratio",
    "1 - ratio * 0.07", "-ratio", "CAST(1.10 AS double)", "CAST(ratio AS double)",
)  # fmt: skip


def expressions(rounds: int = 0) -> list[str]:
    """Everything that is translated, and what is made of it at random."""
    chance = random.Random(7)
    made = [*TRUTHS, *NUMBERS, *TEXTS, *OTHERS]
    for values in (TRUTHS, NUMBERS, TEXTS) * rounds:
        first, second = chance.sample(TRUTHS, 2)
        one, other = chance.sample(values, 2)
        made += [
            f"({first}) AND NOT ({second})", f"({first}) OR ({second})", f"({one}) = ({other})",
            f"CASE WHEN {first} THEN {one} WHEN {second} THEN {other} END",
            f"coalesce({one}, {other})", f"({one}) IS NULL",
        ]  # fmt: skip
    return made


WITH_HEADERS = "SELECT * FROM {v}__whdr"
VIEWS = (*(f"SELECT * FROM {{v}}{end}" for end in ("", "__history", "__changes")), WITH_HEADERS)
STATEMENTS = (
    "SELECT COUNT(n), sum(n), min(n), MAX(id), avg(n), sum(amount) FROM {v} WHERE id <> 5",
    "SELECT v, count(*) AS many, sum(id) FROM {v} GROUP BY v HAVING count(*) > 1 ORDER BY many, 3",
    "SELECT ID, {s}.Name FROM {v} AS {s} ORDER BY Amount DESC, day, id LIMIT 4",
    "SELECT a.*, b.n AS other_n FROM {v} a LEFT JOIN {v} b ON a.n = b.id AND b.id > 1",
    "SELECT id FROM {v} UNION ALL SELECT id FROM {v}__history ORDER BY 1",
    "SELECT a.* FROM {v} a LEFT SEMI JOIN {v} b ON a.n = b.id LEFT ANTI JOIN {v} c ON c.n = a.id",
    (
        "SELECT a.id, b.name, c.v FROM {v} a, {v} d CROSS JOIN {v} b LEFT JOIN {v} c ON c.n = b.id "
        "WHERE (a.n = d.n AND d.id = b.id) AND a.id > 1"
    ),
)
WINDOWS = (
    "SELECT id, row_number() OVER (ORDER BY name DESC, id) AS a, rank() OVER (ORDER BY v) AS b, "
    "dense_rank() OVER (PARTITION BY v ORDER BY day NULLS LAST) AS c, lag(name) OVER (ORDER BY id) "
    "AS d, lead(n, 2) OVER (PARTITION BY v ORDER BY id DESC) AS e, sum(amount) OVER (ORDER BY v) "
    "AS f, count(*) OVER (PARTITION BY day) AS g, max(name) OVER (ORDER BY id) AS h FROM {v} "
    "ORDER BY id"
)
MORE = (
    "SELECT count(*) FROM {v}",
    "SELECT min(amount), max(name), min(day), max(happened), count(DISTINCT name) FROM {v}",
    "SELECT day AS d, name, count(*) FROM {v} GROUP BY d, 2 ORDER BY d DESC, name NULLS LAST",
    "SELECT DISTINCT v, amount FROM {v} ORDER BY amount DESC, v",
    "SELECT * FROM {v} ORDER BY name, id",
    "SELECT a.id, c.v FROM {v} a FULL OUTER JOIN {v}__changes c ON c.id = a.id WHERE c.v OR a.v",
    "WITH b AS (SELECT id, n FROM {v} WHERE n > 0) SELECT a.id FROM b JOIN b a ON b.n = a.n",
    "SELECT name FROM {v} UNION SELECT upper('a') AS b ORDER BY name",
    "SELECT max(id) AS m FROM {v} WHERE id < 0",
    WINDOWS,
    "SELECT hdr__operation, hdr__store, hdr__deleted, count(*) FROM {v}__history GROUP BY 1, 2, 3",
)
OVERFLOWS = ("n + 1", "n + 1 > 5", "n + 1 BETWEEN 1 AND 2", "sum(n + 2)", "max(n * 2) = 4")


def all_of(wanted: Sequence[str], view: str) -> str:
    """All expressions over the rows whose numbers do not overflow."""
    listed = ", ".join(f"{one} AS e{at}" for at, one in enumerate(wanted))
    return f"SELECT id AS i, {listed} FROM {view} WHERE n < 2000000 OR n IS NULL"


def disputed(lab: Lab) -> Feed:
    """A dataset with applied rows on whose values engines disagree."""
    types = {
        **TYPES, "n": "int", "ratio": "double", "other": "double", "zoneless": "timestamp_ntz",
    }  # fmt: skip
    users = lab.feed(columns=types, task={"views": {"headers": True}})
    users.apply(
        put(1, 1, n=1, name="Nn", ratio=2.5, other=2.5, amount="0.0001", day="1582-10-04",
            happened="1969-12-31T23:59:59.999999Z", zoneless="1999-12-31T23:59:59", v=True),
        put(2, 2, n=2147483647, name="", ratio=-0.0, other=0.0, amount="-0.5",
            day="0001-01-01", happened="0001-01-01T00:00:00Z", v=False),
        put(3, 3, n=-1000000000, name="a\u0000b", ratio=1e308, amount="99999999999999.9999"),
        put(4, 4, n=7, name="\U0001f926\u200d", ratio=-1e308, other=1.0, day="9999-12-31"),
        put(5, 5, **FULL), put(6, 6, n=2, name="zz", v=True, day="2026-02-03", amount="2"),
    )  # fmt: skip
    return users


def leave_pending(users: Feed) -> None:
    """Changes, deletes and late events."""
    late = put(4, 2, name="late")
    users.copy(put(7, 7, n=7, name="n\u00e9", v=True), drop(6, 8), late, put(2, 30, n=2147483647))


def test_answers_are_those_of_spark(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    users = disputed(lab)
    project, view = project_of(users), f"{lab.schema}.users"
    leave_pending(users)

    assert assert_same(project, lab, all_of(expressions(), view))
    # `engines/test_engines.py` compares the other views.
    for one in (WITH_HEADERS, *STATEMENTS):
        statement = one.format(v=view, s="users")
        assert assert_same(project, lab, statement, ordered="ORDER BY" in statement)
    # A fault is seen: bytes are not characters.
    with monkeypatch.context() as planted:
        planted.setitem(calls._CALLS, "length", _bytes)  # type: ignore[index]
        with pytest.raises(AssertionError):
            assert_same(project, lab, f"SELECT length(name) AS n FROM {view}")


def test_doubles_that_are_no_numbers(lab: Lab) -> None:
    users = lab.parquet_feed()
    values = [math.nan, -0.0, 0.0, math.inf, -math.inf, None, 0.1]
    pairs = list(itertools.product(values, values))
    first, second = zip(*pairs, strict=True)
    numbers = list(range(len(pairs)))
    users.land_table(id=numbers, seq=numbers, x=list(first), y=list(second))
    users.run("never")

    shown = "x, x = y AS a, x < y AS b, x >= y AS c, x <=> y AS d, x > 0 AS e, y = 0.1 AS f"
    shown += ", x + y AS g, x - y AS h, x * y AS i, x / y AS j, -x AS k"
    statement = f"SELECT {shown} FROM {lab.schema}.users"
    assert assert_same(project_of(users), lab, statement) == len(pairs)


def test_spark_keeps_nothing_of_former_statements(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    answers = Answers(project_of(users), lambda: lab.spark, engine=QueryEngine.SPARK)
    statement = Statement(f"SELECT count(*) FROM {lab.schema}.users")

    def java_objects_after_a_statement() -> int:
        list(answers.answer(statement).batches)
        return sum(isinstance(one, JavaObject) for one in gc.get_objects())

    gc.disable()
    try:
        counts = [java_objects_after_a_statement() for _ in range(6)]
    finally:
        gc.enable()

    assert counts[-1] <= counts[1]


def test_what_the_rows_decide_goes_to_spark(lab: Lab) -> None:
    users = disputed(lab)
    project, view = project_of(users), f"{lab.schema}.users"

    def refused(statement: str, reason: str, **how: Any) -> None:
        with pytest.raises(NotEmbeddedError, match=reason):
            answer_embedded(how.pop("project", project), statement, **how)

    for overflow in OVERFLOWS:
        refused(f"SELECT {overflow} AS x FROM {view}", "DuckDB")
    refused(f"SELECT lower(name) AS x FROM {view}", "other letters")
    refused(f"SELECT 1 AS x FROM {view}", "stored rows", limits=replace(STATEMENT_LIMITS, rows=5))
    refused(f"SELECT 1 AS x FROM {view}", "bytes", limits=replace(STATEMENT_LIMITS, file_bytes=5))
    refused(
        f"SELECT a.name AS x FROM {view} a JOIN {view} b ON a.id = b.id",
        "in memory",
        limits=replace(STATEMENT_LIMITS, memory_bytes=5),
    )
    refused("SELECT 1 AS x FROM shop.others", "not a view")
    users.copy(put(1, 40, name="a"), put(1, 40, name="b"))
    for end in ("", "__whdr", "__history"):
        refused(f"SELECT count(*) FROM {view}{end}", "claim the same place")
    assert answer_embedded(project, f"SELECT count(*) FROM {view}__changes")
    users.configure(except_columns=["op", "seq", "at", "name"])
    refused(f"SELECT count(*) FROM {view}__changes", "another way", project=project_of(users))


@pytest.mark.slow
def test_each_statement_before_during_and_after_an_apply(lab: Lab) -> None:
    users = disputed(lab)
    project = project_of(users)
    for step in (lambda: None, lambda: leave_pending(users), users.apply):
        step()
        for one in (*VIEWS, *STATEMENTS, *MORE):
            statement = one.format(v=f"{lab.schema}.users", s="users")
            assert_same(project, lab, statement, ordered="ORDER BY" in statement)
    assert assert_same(project, lab, all_of(expressions(6), f"{lab.schema}.users"))


@pytest.mark.slow
def test_spark_compares_times_in_a_list_as_texts(lab: Lab) -> None:
    time, text = "TIMESTAMP '2026-01-01 00:00:00'", "'2026-01-01T00:00:00'"

    assert lab.rows(f"SELECT {time} IN ({text}), {time} = {text}") == [(False, True)]


@pytest.mark.slow
def test_columns_that_came_later_and_types_that_widened(lab: Lab) -> None:
    users = lab.parquet_feed(history=True)
    project, view = project_of(users), f"{lab.schema}.users"
    first, ids = pa.array([1, None], pa.int32()), {"id": [1, 2], "seq": [1, 2]}
    cents = pa.array(["0.50", None]).cast(pa.decimal128(5, 2))
    users.land_table(**ids, n=first, r=first.cast(pa.float32()), d=cents, s=[{"x": 1}, None])
    users.apply()
    users.land_table(
        id=[2, 3], seq=[3, 4], n=pa.array([2**40, 7]), r=[0.1, None],
        d=pa.array(["12345.25", "1.00"]).cast(pa.decimal128(9, 2)),
        s=[{"x": 1, "y": ["a"]}, {"x": None, "y": None}], late=[True, False],
    )  # fmt: skip
    for end in ("never", "always"):
        users.run(end)  # type: ignore[arg-type]
        for shown in ("", "__history", "__changes"):
            assert_same(project, lab, f"SELECT * FROM {view}{shown}")
        assert_same(project, lab, f"SELECT late, sum(d), sum(n) FROM {view} GROUP BY late")


def _bytes(_: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue:
    return EmbeddedValue(f"CAST(strlen({arguments[0].sql}) AS INTEGER)", INT)


def test_keys_whose_hash_is_text_of_spark() -> None:
    dataset = SimpleNamespace(
        relations=SimpleNamespace(history_view="h", headers_view="w", view="v")
    )
    for kind, folds, hashed in (
        ("bigint", True, True), ("string", True, True), ("binary", True, True),
        ("timestamp", True, False), ("decimal(9,2)", True, False), ("double", False, False),
    ):  # fmt: skip
        shape = Shape(keys=("id",), columns={"id": parse_type(kind)})
        for view, passes in (("v", folds), ("h", hashed), ("w", hashed)):
            with nullcontext() if passes else pytest.raises(NotEmbeddedError):
                check_fold(dataset, shape, view)  # type: ignore[arg-type]


def test_rows_and_values_that_other_columns_decide() -> None:
    shape = Shape(keys=("id",), columns={"id": INT})
    for plain in (
        replace(shape, expired=("id", datetime(2026, 1, 1, tzinfo=UTC))),
        replace(shape, bridged=frozenset({"id"})),
    ):
        with pytest.raises(NotEmbeddedError, match=r"age|another type"):
            live_view(None, plain, "users", used=(), stored="s0")  # type: ignore[arg-type]
