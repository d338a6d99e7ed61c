"""Which input columns a column of a query comes from: kinds of query, random ones, faults."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from polynya.derived import lineage
from polynya.derived.lineage import NOTHING, ColumnOrigins, ExpressionLineage, lineage_of
from polynya.derived.statement import parse
from polynya.query.translate import NotEmbeddedError
from tests.derived.lineage_oracle import MissingOriginError, check_lineage
from tests.derived.queries import Statements
from tests.derived.shop import INPUTS, Tables

TABLES = Tables()


def shown(origins: ColumnOrigins) -> str:
    """`orders.amt TRANSFORMATION, …`, and `?` where something is unknown."""
    known = [
        f"{name.partition('.')[2]}.{column} {'+'.join(sorted(kinds))}"
        for (name, column), kinds in sorted(origins.inputs.items())
    ]
    return ", ".join(known + ["?"] * bool(origins.unknown))


def of(sql: str) -> dict[str, str]:
    """Each column of a statement, and `*` for its rows."""
    found = lineage_of(parse(sql, INPUTS, "q.sql"))
    return {
        **{name: shown(origins) for name, origins in found.columns.items()},
        "*": shown(found.rows),
    }


#: Statement -> its columns with their origins; `*` for the rows, left out where nothing decides.
LINEAGE: dict[str, dict[str, str]] = {
    "SELECT id, amt * 2 AS twice, 1 AS one FROM orders": {
        "id": "orders.id IDENTITY", "twice": "orders.amt TRANSFORMATION", "one": "",
    },
    "SELECT id FROM orders WHERE st = 'a'": {
        "id": "orders.id IDENTITY", "*": "orders.st FILTER",
    },
    "SELECT cust, sum(amt) AS s, count(*) AS n FROM orders GROUP BY cust HAVING max(rate) > 1": {
        "cust": "orders.cust IDENTITY", "s": "orders.amt AGGREGATION", "n": "",
        "*": "orders.cust GROUP_BY, orders.rate FILTER",
    },
    "SELECT cust AS k, max(amt) AS m FROM orders GROUP BY ALL": {
        "k": "orders.cust IDENTITY", "m": "orders.amt AGGREGATION", "*": "orders.cust GROUP_BY",
    },
    "SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON c.id = o.cust": {
        "id": "orders.id IDENTITY", "region": "customers.region IDENTITY",
        "*": "customers.id JOIN, orders.cust JOIN",
    },
    "SELECT id FROM customers LEFT ANTI JOIN orders ON cust = customers.id": {
        "id": "customers.id IDENTITY", "*": "customers.id JOIN, orders.cust JOIN",
    },
    "SELECT cust, id FROM orders FULL JOIN (SELECT id AS cust FROM customers) USING (cust)": {
        "cust": "customers.id TRANSFORMATION, orders.cust TRANSFORMATION",
        "id": "orders.id IDENTITY", "*": "customers.id JOIN, orders.cust JOIN",
    },
    "SELECT CASE WHEN st = 'a' THEN amt ELSE rate END AS v FROM orders": {
        "v": "orders.amt TRANSFORMATION, orders.rate TRANSFORMATION, orders.st CONDITIONAL",
    },
    "SELECT id, rank() OVER (PARTITION BY st ORDER BY amt) AS r FROM orders": {
        "id": "orders.id IDENTITY", "r": "orders.amt WINDOW, orders.st WINDOW",
    },
    "SELECT id, sum(amt) OVER w AS s FROM orders WINDOW w AS (PARTITION BY st)": {
        "id": "orders.id IDENTITY", "s": "orders.amt AGGREGATION, orders.st WINDOW",
    },
    "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY st ORDER BY id) AS n FROM orders) "
    "WHERE n = 1": {
        "id": "orders.id IDENTITY", "*": "orders.id WINDOW, orders.st WINDOW",
    },
    "SELECT DISTINCT st, cust FROM orders": {
        "st": "orders.st IDENTITY", "cust": "orders.cust IDENTITY",
        "*": "orders.cust GROUP_BY, orders.st GROUP_BY",
    },
    "SELECT id FROM orders UNION ALL SELECT oid + 1 FROM items": {
        "id": "items.oid TRANSFORMATION, orders.id IDENTITY",
    },
    "SELECT st FROM orders EXCEPT SELECT prod FROM items": {
        "st": "orders.st IDENTITY", "*": "items.prod FILTER, orders.st FILTER",
    },
    "SELECT id FROM orders WHERE EXISTS (SELECT prod FROM items WHERE oid = id AND ok)": {
        "id": "orders.id IDENTITY", "*": "items.oid FILTER, items.ok FILTER, orders.id FILTER",
    },
    "SELECT id, (SELECT max(qty) FROM items WHERE oid = id) AS m FROM orders": {
        "id": "orders.id IDENTITY",
        "m": "items.oid FILTER, items.qty AGGREGATION, orders.id FILTER",
    },
    "WITH t(k, v) AS (SELECT cust, sum(amt) FROM orders GROUP BY cust) "
    "SELECT a.k, b.v + 1 AS v FROM t a JOIN t b ON a.k = b.k": {
        "k": "orders.cust IDENTITY", "v": "orders.amt AGGREGATION",
        "*": "orders.cust GROUP_BY+JOIN",
    },
    "SELECT id FROM orders ORDER BY amt": {"id": "orders.id IDENTITY"},
    "SELECT id AS k FROM orders ORDER BY k, amt LIMIT 2": {
        "k": "orders.id IDENTITY", "*": "orders.amt SORT, orders.id SORT",
    },
    "SELECT * FROM items WHERE ok": {
        "oid": "items.oid IDENTITY", "line": "items.line IDENTITY", "prod": "items.prod IDENTITY",
        "qty": "items.qty IDENTITY", "ok": "items.ok IDENTITY", "*": "items.ok FILTER",
    },
}  # fmt: skip
#: The same, for what DuckDB does not run.
OF_SPARK: dict[str, dict[str, str]] = {
    "SELECT if(cust > 1, id, 0) AS w, nullif(st, 'a') AS n FROM orders": {
        "w": "orders.cust CONDITIONAL, orders.id TRANSFORMATION",
        "n": "orders.st TRANSFORMATION",
    },
    "SELECT id, word FROM orders LATERAL VIEW explode(split(st, ' ')) t AS word": {
        "id": "orders.id IDENTITY", "word": "orders.st TRANSFORMATION", "*": "orders.st JOIN",
    },
    "SELECT id, posexplode(split(st, ' ')) AS (at, word) FROM orders": {
        "id": "orders.id IDENTITY", "at": "orders.st TRANSFORMATION",
        "word": "orders.st TRANSFORMATION", "*": "orders.st JOIN",
    },
    "SELECT o.id, l.m FROM orders o JOIN LATERAL (SELECT max(qty) AS m FROM items "
    "WHERE oid = o.cust) l": {
        "id": "orders.id IDENTITY", "m": "items.qty AGGREGATION",
        "*": "items.oid FILTER, orders.cust FILTER",
    },
    "SELECT cust, count(*) FILTER (WHERE st = 'a') AS n, percentile_cont(0.5) WITHIN GROUP "
    "(ORDER BY amt) AS p, max_by(rate, placed) AS r FROM orders GROUP BY cust": {
        "cust": "orders.cust IDENTITY", "n": "orders.st CONDITIONAL",
        "p": "orders.amt AGGREGATION", "r": "orders.placed SORT, orders.rate AGGREGATION",
        "*": "orders.cust GROUP_BY",
    },
    "SELECT id, transform(split(st, ' '), x -> concat(x, region)) AS t "
    "FROM orders JOIN (SELECT id AS c, region FROM customers) ON c = cust": {
        "id": "orders.id IDENTITY",
        "t": "customers.region TRANSFORMATION, orders.st TRANSFORMATION",
        "*": "customers.id JOIN, orders.cust JOIN",
    },
}  # fmt: skip


@pytest.mark.parametrize("sql", [*LINEAGE, *OF_SPARK])
def test_a_column_knows_what_makes_it_and_what_decides_its_rows(sql: str) -> None:
    assert of(sql) == {"*": "", **{**LINEAGE, **OF_SPARK}[sql]}


@pytest.mark.parametrize("sql", LINEAGE)
def test_other_columns_may_change_without_an_effect(sql: str) -> None:
    check_lineage(sql, Random(sql), TABLES, rounds=2)


def test_what_is_not_found_is_unknown_and_not_left_out() -> None:
    statement = parse("SELECT id, word FROM orders LATERAL VIEW posexplode(split(st, ' ')) t AS "
                      "at, word", INPUTS, "q.sql")  # fmt: skip
    statement.tree.args["laterals"][0].args["alias"].set("columns", [])

    found = lineage_of(statement)

    assert shown(found.columns["id"]) == "orders.id IDENTITY"
    assert found.columns["word"].unknown == ("nothing tells where `t.word` is from",)


@seeded(int(os.environ.get("POLYNYA_TEST_SEED", "1")))
@settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_the_lineage_of_random_statements_lacks_no_column(random: Random) -> None:
    try:
        found = check_lineage(Statements(random).statement(), random, TABLES)
    except NotEmbeddedError:
        return
    assert not any(one.unknown for one in (found.rows, *found.columns.values()))


@pytest.mark.slow
def test_the_lineage_of_many_random_statements_lacks_no_column() -> None:
    first = int(os.environ.get("POLYNYA_TEST_SEED", "1")) * 1000
    for seed in range(first, first + 150):
        random = Random(seed)
        try:
            check_lineage(Statements(random).statement(), random, TABLES, rounds=2)
        except NotEmbeddedError:
            continue


Patch = pytest.MonkeyPatch


def _nothing(*_: object) -> ColumnOrigins:
    return NOTHING


def _no_windows(patch: Patch) -> None:
    patch.setattr(ExpressionLineage, "_of_window", lambda self, node: self.of(node.this))


def _no_conditions(patch: Patch) -> None:
    real = ExpressionLineage._all

    def planted(self: ExpressionLineage, nodes: object, kind: object) -> ColumnOrigins:
        found = real(self, nodes, kind)  # type: ignore[arg-type]
        return NOTHING if kind is lineage.LineageKind.CONDITIONAL else found

    patch.setattr(ExpressionLineage, "_all", planted)


def _first_branch(patch: Patch) -> None:
    patch.setattr(ColumnOrigins, "__or__", lambda self, other: self if self.inputs else other)


#: A fault -> how to plant it, and a query that shows it.
FAULTS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "WHERE is ignored": (
        lambda p: p.setattr(lineage, "_CLAUSES", {}), "SELECT id FROM orders WHERE st >= 'b'",
    ),
    "GROUP BY is ignored": (
        lambda p: p.setattr(lineage, "_grouped", _nothing),
        "SELECT count(*) AS n FROM orders GROUP BY st",
    ),
    "ORDER BY before LIMIT is ignored": (
        lambda p: p.setattr(lineage, "_cut", _nothing),
        "SELECT id FROM orders ORDER BY amt, id LIMIT 1",
    ),
    "PARTITION BY and ORDER BY of windows are ignored": (
        _no_windows, "SELECT id, rank() OVER (PARTITION BY st ORDER BY amt) AS r FROM orders",
    ),
    "conditions of CASE are ignored": (
        _no_conditions, "SELECT CASE WHEN st >= 'b' THEN id END AS v FROM orders",
    ),
    "of several origins only the first counts": (
        _first_branch, "SELECT coalesce(id, 0) + coalesce(cust, 0) AS v FROM orders",
    ),
    "a query in an expression is ignored": (
        lambda p: p.setattr(ExpressionLineage, "_of_query", _nothing),
        "SELECT (SELECT max(qty) FROM items WHERE oid = id) AS m FROM orders",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, sql = FAULTS[fault]
    plant(monkeypatch)

    with pytest.raises(MissingOriginError):
        check_lineage(sql, Random(1), TABLES, rounds=20)
