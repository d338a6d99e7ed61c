"""Which rows of a statement can change: each kind of query, random ones, and planted faults."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from sqlglot import exp

from polynya.derived import affected, blocks, restriction, terms
from polynya.derived.affected import FullPlan, IncrementalPlan, Plan, affected_keys_sql, analyse
from polynya.derived.blocks import How, SelectBlock, direct, relations_of, selects
from polynya.derived.statement import parse
from polynya.query.translate import NotEmbeddedError
from tests.derived.random_steps import follow_random, follow_seed
from tests.derived.shop import INPUTS, Counts, Tables, WrongResultError, follow, histories

TABLES = Tables()


def plan_of(sql: str) -> Plan:
    return analyse(parse(sql, INPUTS, "q.sql"))


#: An order of which the analysis does not know that it is total.
_NUMBERED = (
    "SELECT cust, id, row_number() OVER (PARTITION BY cust ORDER BY id) AS n FROM "
    "(SELECT id, cust FROM orders) x"
)
_FIRST = f"SELECT * FROM ({_NUMBERED}) WHERE n < 4"
#: Statement -> its restriction columns.
INCREMENTAL = {
    "SELECT o.id, c.region FROM orders o JOIN customers c ON c.id = o.cust": "id",
    "SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON c.id = o.cust "
    "WHERE c.seg IS NULL": "id",
    "SELECT c.id, o.amt FROM orders o RIGHT JOIN customers c ON c.id = o.cust": "id",
    "SELECT o.id, d.qty FROM orders o LEFT JOIN customers c ON c.id = o.cust "
    "JOIN items d ON coalesce(c.seg, 0) = d.qty": "id",
    "SELECT id FROM customers LEFT SEMI JOIN orders ON cust = customers.id": "id",
    "SELECT id FROM customers LEFT ANTI JOIN orders ON cust = customers.id": "id",
    "SELECT coalesce(o.cust, c.id) AS k, amt, region FROM orders o "
    "FULL JOIN customers c ON o.cust = c.id": "k",
    "SELECT cust, id, amt, region FROM orders FULL JOIN (SELECT id AS cust, region "
    "FROM customers) USING (cust)": "cust",
    "SELECT cust, count(*) AS n FROM orders GROUP BY cust HAVING count(*) > 1": "cust",
    "SELECT cust AS k, max(amt) AS m FROM orders GROUP BY ALL": "k",
    "SELECT cust + 1 AS k, max(amt) AS m FROM orders GROUP BY 1": "k",
    "SELECT cust, st, count(*) AS n FROM orders GROUP BY ROLLUP (cust, st)": "cust, st",
    "SELECT cust, st, count(*) AS n FROM orders GROUP BY GROUPING SETS ((cust, st), (st), ())":
        "cust, st",
    "SELECT DISTINCT st, cust FROM orders": "st, cust",
    "SELECT cust, rank() OVER (PARTITION BY cust ORDER BY amt) AS r FROM orders": "cust",
    "SELECT cust, sum(qty) OVER w AS s FROM orders JOIN items ON oid = id "
    "WINDOW w AS (PARTITION BY cust)": "cust",
    "SELECT id FROM orders UNION ALL SELECT oid FROM items": "id",
    "SELECT st FROM orders UNION SELECT prod FROM items": "st",
    "SELECT cust FROM orders INTERSECT SELECT id FROM customers": "cust",
    "SELECT cust FROM orders EXCEPT SELECT id FROM customers": "cust",
    "SELECT 'all' AS what, cust FROM orders UNION ALL SELECT 'one', id FROM customers": "cust",
    "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE oid = id AND ok)": "id",
    "SELECT id FROM orders WHERE cust NOT IN (SELECT id FROM customers)": "id",
    "SELECT id FROM orders WHERE st IN (SELECT max(prod) FROM items GROUP BY oid)": "id",
    "SELECT id, (SELECT max(qty) FROM items WHERE oid = id) AS m FROM orders": "id",
    "SELECT id FROM orders WHERE amt > (SELECT max(qty) FROM items)": "id",
    "WITH t AS (SELECT cust, count(*) AS n FROM orders GROUP BY cust) "
    "SELECT a.cust, b.n FROM t a JOIN t b ON a.cust = b.n": "cust, n",
    "SELECT id, cust FROM (SELECT *, row_number() OVER (PARTITION BY cust ORDER BY placed, id) "
    "AS rn FROM orders) WHERE rn = 1": "id, cust",
    "SELECT id, amt + 1 AS more, more + 1 AS most FROM orders": "id",
    # Ties are ordered anyhow, so the rows of a partition stay together.
    f"SELECT cust, id, n, region FROM ({_NUMBERED}) o JOIN customers USING (id)": "cust",
    f"SELECT a.cust, b.id FROM ({_NUMBERED}) a JOIN ({_NUMBERED}) b ON a.cust = b.cust "
    "AND a.n = b.n + 1": "cust",
    # Windows over what windows have let through.
    f"SELECT cust, id, lag(id) OVER (PARTITION BY cust ORDER BY id) AS b FROM ({_FIRST})": "cust",
    f"WITH f AS ({_FIRST}), g AS (SELECT *, lead(id) OVER (PARTITION BY cust ORDER BY id) AS m "
    "FROM f) SELECT cust AS c, m FROM g WHERE m IS NOT NULL": "c",
    f"SELECT cust, count(*) AS n FROM ({_FIRST}) WHERE n < 3 GROUP BY cust": "cust",
    f"SELECT cust, n FROM ({_FIRST}) UNION ALL SELECT -1, 0": "cust",
    "SELECT id, st FROM orders UNION ALL SELECT -1, 'none'": "id",
}  # fmt: skip
#: Statement -> words of the reason.
FULL = {
    "SELECT id FROM orders LIMIT 3": "LIMIT",
    "SELECT id FROM orders WHERE cust IN (SELECT id FROM customers LIMIT 3)": "LIMIT",
    "SELECT avg(amt) AS m FROM orders": "without GROUP BY",
    "SELECT id, rand() AS r FROM orders": "rand() gives another value",
    "SELECT id, current_date AS d FROM orders": "another time",
    "SELECT id, now() AS d FROM orders": "another time",
    "SELECT amt, region FROM orders o FULL JOIN customers c ON o.cust = c.id": "FULL OUTER JOIN",
    "SELECT id, rank() OVER (ORDER BY amt) AS r FROM orders": "without PARTITION BY",
    "SELECT id, rank() OVER (PARTITION BY cust ORDER BY amt) AS r FROM orders": "PARTITION BY of",
    "SELECT max(id) AS m FROM orders GROUP BY cust": "columns of GROUP BY",
    "SELECT c.region, count(*) AS n FROM orders o LEFT JOIN customers c ON c.id = o.cust "
    "GROUP BY c.region": "columns of GROUP BY",
    "SELECT amt FROM (SELECT *, row_number() OVER (PARTITION BY cust ORDER BY placed) AS rn "
    "FROM orders) WHERE rn = 1": "may order ties anyhow",
    f"SELECT id, n FROM ({_FIRST})": "may order ties anyhow",
    f"SELECT c.id, f.n FROM customers c LEFT JOIN ({_FIRST}) f ON f.cust = c.id": "outer join",
    f"SELECT f.cust, c.region FROM (SELECT * FROM ({_FIRST}) WHERE id > 1) f "
    "JOIN customers c ON c.id = f.id": "two levels below a join",
    f"SELECT id FROM orders WHERE id IN (SELECT id FROM ({_FIRST}))": "in a subquery",
    f"SELECT cust, n FROM ({_NUMBERED}) o WHERE EXISTS (SELECT 1 FROM items WHERE line = o.n)":
        "compared with a subquery",
    f"SELECT cust FROM (SELECT cust FROM ({_FIRST}) UNION SELECT id FROM customers)":
        "inside of a set operation",
    f"SELECT cust, count(*) AS m FROM ({_FIRST}) GROUP BY ROLLUP (cust)": "several sets of groups",
    f"SELECT o.cust, t.e FROM ({_NUMBERED}) o LATERAL VIEW explode(sequence(1, n)) t AS e":
        "LATERAL VIEW",
    "SELECT 1 AS a UNION ALL SELECT 2": "every branch",
    "SELECT s, count(*) AS n FROM (SELECT sum(rate) AS s FROM orders GROUP BY cust) GROUP BY s":
        "a sum of doubles",
    "SELECT a.m FROM (SELECT avg(amt) AS m FROM orders) AS a": "its last value",
}  # fmt: skip


@pytest.mark.parametrize("sql", INCREMENTAL)
def test_a_statement_is_restricted_and_right_over_a_history(sql: str) -> None:
    plan = plan_of(sql)

    assert isinstance(plan, IncrementalPlan), plan
    assert ", ".join(plan.columns) == INCREMENTAL[sql]
    follow(sql, histories(Random(sql), 4), TABLES, Counts())


@pytest.mark.parametrize("sql", FULL)
def test_a_statement_is_computed_as_a_whole_with_the_reason(sql: str) -> None:
    plan = plan_of(sql)

    assert isinstance(plan, FullPlan), plan
    assert FULL[sql] in plan.reason


def test_the_keys_of_the_result_are_preferred_where_they_may_restrict() -> None:
    statement = parse("SELECT id, cust, st FROM orders", INPUTS, "q.sql")

    assert [analyse(statement, prefer=[c]).columns for c in ("st", "ID")] == [("st",), ("id",)]  # type: ignore[union-attr]


def test_a_key_of_the_touched_table_is_affected_without_reading_a_table() -> None:
    plan = plan_of("SELECT o.id, c.region FROM orders o JOIN customers c ON c.id = o.cust")
    states = ("old", "new", "touched_old", "touched_new")
    changed = {name: f"changed_{name.partition('.')[2]}" for name in INPUTS}
    relations = [{name: f"{state}_{name.partition('.')[2]}" for name in INPUTS} for state in states]

    assert isinstance(plan, IncrementalPlan)
    text = affected_keys_sql(plan, *relations, changed=changed)
    of_orders, *of_customers = text.split(" UNION ")

    assert "changed_orders" in of_orders
    assert "old_" not in of_orders
    assert all("touched_" in part and "customers" in part for part in of_customers)


def test_inputs_without_a_change_are_not_read_for_affected_keys() -> None:
    plan = plan_of(
        "WITH t AS (SELECT oid, max(qty) AS m FROM items GROUP BY oid UNION ALL SELECT id, 0 FROM "
        "customers) SELECT o.id, c.region, t.m FROM orders o JOIN customers c ON c.id = o.cust "
        "JOIN t ON t.oid = o.id"
    )
    states = ("old", "new", "touched_old", "touched_new")
    changed = {name: f"changed_{name.partition('.')[2]}" for name in INPUTS}
    relations = [{name: f"{state}_{name.partition('.')[2]}" for name in INPUTS} for state in states]

    assert isinstance(plan, IncrementalPlan)
    text = affected_keys_sql(
        plan, *relations, changed=changed, unchanged=["shop.customers", "shop.items"]
    )

    assert "changed_orders" in text
    assert "customers" not in text
    assert "items" not in text


def test_lateral_view_is_kept_in_the_text_for_spark_only() -> None:
    sql = "SELECT id + 1 AS next, word FROM orders LATERAL VIEW explode(split(st, ' ')) t AS word"
    plan = plan_of(sql)
    names = {name: f"s_{name.partition('.')[2]}" for name in INPUTS}

    assert isinstance(plan, IncrementalPlan)
    assert "LATERAL VIEW" in affected_keys_sql(plan, names, names, names, names, changed=names)
    with pytest.raises(NotEmbeddedError, match="LATERAL"):
        affected_keys_sql(plan, names, names, names, names, changed=names, dialect="duckdb")


@seeded(int(os.environ.get("POLYNYA_TEST_SEED", "1")))
@settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_random_statements_are_right_over_random_histories(random: Random) -> None:
    follow_random(random, TABLES, Counts())


@pytest.mark.slow
def test_a_thousand_steps_of_statements_by_seeds_are_right() -> None:
    counts, seed = Counts(), int(os.environ.get("POLYNYA_TEST_SEED", "1")) * 1000

    while counts.steps < 1000:
        follow_seed(seed, TABLES, counts)
        seed += 1

    assert counts.totals, seed


Patch = pytest.MonkeyPatch


def _without_partitions(patch: Patch) -> None:
    real = blocks.blocks_of

    def planted(statement: Any) -> Any:
        top, ctes = real(statement)
        inside = [top, *(r.block for r in relations_of(top) if r.block is not None)]
        for block in inside:
            for branch in selects(block):
                branch.partitions = []
        return top, ctes

    patch.setattr(affected, "blocks_of", planted)


def _no_weak_columns(patch: Patch) -> None:
    real, weak = affected._Planner._allowed_of, SelectBlock.weak

    def planted(self: Any, block: Any) -> list[int]:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(SelectBlock, "weak", set())
            return real(self, block)

    assert weak is not None
    patch.setattr(affected._Planner, "_allowed_of", planted)


def _aggregates_restrict(patch: Patch) -> None:
    patch.setattr(affected, "is_plain", lambda expression: True)
    patch.setattr(affected, "_covered", lambda *given: True)


def _pairs_of_any_columns(patch: Patch) -> None:
    def planted(block: SelectBlock) -> list[tuple[exp.Column, exp.Column]]:
        left, right = (relation.alias for relation in block.relations)
        return [(exp.column("id", table=left), exp.column("seg", table=right))]

    patch.setattr(affected, "compared_columns", planted)


def _having_kept(patch: Patch) -> None:
    real = affected._Planner._query

    def planted(self: Any, block: SelectBlock, *given: Any) -> Any:
        query = real(self, block, *given)
        if block.having is not None and block.group is not None:
            query.set("distinct", None)
            query.set("group", block.group.copy())
            query.set("having", exp.Having(this=block.having.copy()))
        return query

    patch.setattr(affected._Planner, "_query", planted)


def _first_only(patch: Patch) -> None:
    def planted(*given: Any, **named: Any) -> Iterator[Any]:
        return islice(terms.terms(*given, **named), 1)

    patch.setattr(affected, "terms", planted)


def _left_branch_only(patch: Patch) -> None:
    real = affected._Planner._keys

    def planted(self: Any, block: Any, *given: Any) -> Any:
        return real(self, next(selects(block)), *given)

    patch.setattr(affected._Planner, "_keys", planted)


def _blocks_in_from_ignored(patch: Patch) -> None:
    def planted(*given: Any, **named: Any) -> Iterator[Any]:
        found = list(terms.terms(*given, **named))
        tables = [t for t in found if all(s.relation.block is None for s in t.steps if s.touched)]
        return iter(tables or found[:1])

    patch.setattr(affected, "terms", planted)


def _positive_members(patch: Patch) -> None:
    real = blocks._members
    patch.setattr(
        blocks, "_members", lambda value, branch, positive: real(value, branch, positive=True)
    )


def _left_allows_all(patch: Patch) -> None:
    real = affected._Planner._allowed_of

    def planted(self: Any, block: Any) -> list[int]:
        return real(self, next(selects(block)))

    patch.setattr(affected._Planner, "_allowed_of", planted)


def _outer_joins_narrow_both_sides(patch: Patch) -> None:
    real = restriction._spread

    def planted(branch: SelectBlock, known: dict[tuple[str, str], str], kinds: Any) -> None:
        real(branch, known, kinds)
        for relation in branch.relations:
            for part in relation.on if relation.how is How.LEFT else ():
                pair = [direct(side) for side in (part.this, part.expression)]
                one, other = ((c.table, c.name) for c in pair if c is not None)
                for source, target in ((one, other), (other, one)):
                    if source in known:
                        known.setdefault(target, known[source])
        real(branch, known, kinds)

    patch.setattr(restriction, "_spread", planted)


def _narrowed_where_read_once(patch: Patch) -> None:
    patch.setattr(restriction, "Counter", lambda relations: dict.fromkeys(relations, 1))


_ROWS = "SELECT s0.id AS p0, s1.prod AS p1 FROM orders s0 JOIN items s1 ON s0.id = s1.oid"
#: A fault of the analysis -> how to plant it, and a query that shows it.
FAULTS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "the old state is ignored": (lambda p: p.setattr(affected, "_STATES", ("new",)), _ROWS),
    "the new state is ignored": (lambda p: p.setattr(affected, "_STATES", ("old",)), _ROWS),
    "conditions on the optional side are kept": (
        lambda p: p.setattr(terms, "tables_of", lambda part: set()),
        "SELECT o.id FROM orders o LEFT JOIN items i ON o.id = i.oid WHERE i.prod IS NULL",
    ),
    "a later join by the optional side is kept": (
        lambda p: p.setattr(terms, "tables_of", lambda part: set()),
        ("SELECT o.id, d.seg FROM orders o LEFT JOIN items i ON o.id = i.oid "
        "JOIN customers d ON coalesce(i.qty, 1) = d.id"),
    ),
    "subqueries are ignored": (
        lambda p: p.setattr(terms, "_nested", lambda *given: iter(())),
        "SELECT id FROM orders WHERE NOT EXISTS (SELECT 1 FROM items WHERE oid = id)",
    ),
    "only the first source counts": (
        _first_only,
        ("SELECT s0.id, sum(s1.qty) AS a FROM orders s0 JOIN items s1 ON s0.id = s1.oid "
        "GROUP BY s0.id"),
    ),
    "any column restricts a window": (
        _without_partitions,
        "SELECT id, cust, rank() OVER (PARTITION BY cust ORDER BY amt, id) AS w FROM orders",
    ),
    "columns of the optional side restrict": (
        _no_weak_columns,
        ("SELECT s1.prod, count(*) AS n FROM orders s0 LEFT JOIN items s1 ON s0.id = s1.oid "
        "GROUP BY s1.prod"),
    ),
    "HAVING is kept": (
        _having_kept,
        "SELECT cust, count(*) AS n FROM orders GROUP BY cust HAVING count(*) > 1",
    ),
    "an aggregate restricts": (
        _aggregates_restrict,
        "SELECT max(amt) AS m FROM orders GROUP BY cust",
    ),
    "the second branch of UNION is ignored": (
        _left_branch_only, "SELECT id FROM orders UNION ALL SELECT oid FROM items",
    ),
    "what the first branch allows, the second does": (
        _left_allows_all,
        ("SELECT id, 1 AS n FROM orders UNION ALL "
        "SELECT max(oid), count(*) FROM items GROUP BY prod"),
    ),
    "subqueries in FROM never change": (
        _blocks_in_from_ignored,
        ("SELECT c.id, t.n FROM customers c JOIN (SELECT cust, count(*) AS n FROM orders "
        "GROUP BY cust) t ON t.cust = c.id"),
    ),
    "NOT IN counts as IN": (
        _positive_members,
        "SELECT id FROM orders WHERE cust NOT IN (SELECT seg FROM customers)",
    ),
    "totals of ROLLUP are forgotten": (
        lambda p: p.setattr(SelectBlock, "has_sets", False),
        "SELECT st, cust, count(*) AS n FROM orders GROUP BY ROLLUP (st, cust)",
    ),
    "any columns restrict FULL OUTER JOIN": (
        _pairs_of_any_columns,
        (
            "SELECT coalesce(o.id, c.seg) AS k, c.region, o.amt FROM orders o "
            "FULL JOIN customers c ON o.cust = c.id"
        ),
    ),
    "an outer join narrows the side that it keeps": (
        _outer_joins_narrow_both_sides,
        ("SELECT o.id, o.cust, i.line, i.qty FROM orders o "
        "LEFT JOIN items i ON i.oid = o.id AND i.oid = o.cust"),
    ),
    "an outer join narrows a table before it": (
        _outer_joins_narrow_both_sides,
        ("SELECT o.id, c.region, i.line FROM orders o CROSS JOIN customers c "
        "LEFT JOIN items i ON i.oid = o.id AND i.oid = c.id"),
    ),
    "a table is narrowed at one of its two places": (
        _narrowed_where_read_once,
        "SELECT o.id, p.amt FROM orders o JOIN (SELECT cust, amt FROM orders) p ON p.cust = o.id",
    ),
}  # fmt: skip


def _is_right(sql: str, *, starts: int = 12, **edits: Any) -> bool:
    try:
        for start in range(starts):
            follow(sql, histories(Random(start), 8), TABLES, Counts(), **edits)
    except WrongResultError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str, monkeypatch: Patch) -> None:
    plant, sql = FAULTS[name]
    plant(monkeypatch)

    assert not _is_right(sql)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_the_query_for_a_fault_is_right_without_it(name: str) -> None:
    _, sql = FAULTS[name]

    assert isinstance(plan_of(sql), FullPlan) or _is_right(sql, starts=1)


def test_keys_that_are_compared_without_null_are_caught() -> None:
    sql = "SELECT cust, count(*) AS n FROM orders GROUP BY cust"

    assert not _is_right(sql, edit_restricted=lambda q: q.replace("IS NOT DISTINCT FROM", "="))
