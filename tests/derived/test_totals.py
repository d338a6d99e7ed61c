"""Totals of one row follow by what changed rows add and take away; planted faults are caught."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from polynya.derived import totals
from polynya.derived.affected import FullPlan, Plan, analyse
from polynya.derived.plans import TotalsPlan
from polynya.derived.statement import parse
from polynya.derived.tables import NarrowedText, ParsedQuery, parsed_query
from polynya.derived.totals import Merge, UnknownTotalError, merged
from tests.derived.shop import INPUTS, Counts, Tables, WrongResultError, follow, histories

TABLES = Tables()
Patch = pytest.MonkeyPatch

#: Statement -> the columns by which rows are narrowed.
FOLLOWED = {
    "SELECT count(*) AS n, sum(amt) AS a, sum(qty) AS q FROM orders JOIN items ON oid = id": "id",
    "SELECT 'all' AS id, coalesce(sum(amt), 0) AS a FROM orders WHERE st = 'a'": "id",
    "SELECT count(*) FILTER (WHERE ok) AS n, sum(qty) AS q FROM items": "oid, line",
    "SELECT max(placed) AS late, min(amt) AS least, max(st) AS s FROM orders": "id",
    "SELECT count(DISTINCT cust) AS c, sum(amt) AS a FROM orders": "cust",
    "SELECT count(DISTINCT cust, st) AS c, sum(DISTINCT cust) AS d FROM orders": "cust",
    "SELECT sum(CASE WHEN c.id IS NULL THEN 1 ELSE 0 END) AS lone FROM orders o "
    "LEFT JOIN customers c ON c.id = o.cust": "id",
    "SELECT count(o.id) AS n FROM orders o RIGHT JOIN customers c ON c.id = o.cust": "id",
    "SELECT sum(amt) AS a FROM orders o WHERE amt > (SELECT min(amt) FROM orders i "
    "WHERE i.cust = o.cust)": "id",
    "SELECT count(*) AS n FROM (SELECT cust FROM orders INTERSECT SELECT id FROM customers) AS b":
        "cust",
    "SELECT count(*) AS n FROM (SELECT st FROM orders EXCEPT SELECT prod FROM items)": "st",
    "WITH b AS (SELECT cust, count(*) AS n FROM orders GROUP BY cust) "
    "SELECT count(*) AS k, sum(n) AS n FROM b WHERE n > 1": "cust",
    "SELECT sum(CASE WHEN o.id IS NULL THEN 1 ELSE 0 END) AS lone, count(*) AS n "
    "FROM orders o FULL JOIN customers c ON o.cust = c.id": "cust, id",
    "SELECT * FROM (SELECT count(*) AS a FROM orders WHERE st = 'a') x, "
    "(SELECT count(*) AS b FROM orders WHERE st = 'b') y, "
    "(SELECT sum(seg) AS c FROM customers) z": "id",
}  # fmt: skip
#: Statement -> words of the reason.
WHOLE = {
    "SELECT avg(amt) AS a FROM orders": "the column a cannot be told from its last value",
    "SELECT sum(rate) AS a FROM orders": "a sum of doubles",
    "SELECT max(rate) AS a FROM orders": "the column a cannot be told",
    "SELECT sum(amt) / count(*) AS a FROM orders": "the column a cannot be told",
    "SELECT sum(amt) + 1 AS a FROM orders": "the column a cannot be told",
    "SELECT count(*) AS n FROM orders HAVING count(*) > 1": "HAVING",
    "SELECT count(DISTINCT cust) AS c, count(DISTINCT st) AS s FROM orders": "no relation of it",
    "SELECT count(DISTINCT c.seg) AS s, count(*) AS n FROM orders o "
    "LEFT JOIN customers c ON c.id = o.cust": "no relation of it",
    "SELECT count(*) AS n FROM (SELECT cust FROM orders GROUP BY cust HAVING sum(rate) > 1)":
        "sum of doubles",
    "SELECT count(*) AS n FROM (SELECT *, row_number() OVER (PARTITION BY cust ORDER BY placed) "
    "AS rn FROM orders) WHERE rn = 1": "order of ties",
    "WITH t AS (SELECT sum(amt) AS s FROM orders) SELECT a.s, b.n FROM t a, "
    "(SELECT count(*) AS n FROM orders WHERE amt > (SELECT s FROM t)) b": "other parts",
}  # fmt: skip


def plan_of(sql: str) -> Plan:
    return analyse(parse(sql, INPUTS, "q.sql"))


@pytest.mark.parametrize("sql", FOLLOWED)
def test_a_total_follows_what_changed_rows_add(sql: str) -> None:
    plan, counts = plan_of(sql), Counts()

    assert isinstance(plan, TotalsPlan), plan
    assert ", ".join(plan.columns) == FOLLOWED[sql]
    follow(sql, histories(Random(sql), 6), TABLES, counts)
    assert counts.unknown < counts.totals


@pytest.mark.parametrize("sql", WHOLE)
def test_a_total_that_does_not_add_up_is_computed_as_a_whole(sql: str) -> None:
    plan = plan_of(sql)

    assert isinstance(plan, FullPlan), plan
    assert WHOLE[sql] in plan.reason


def test_the_text_of_the_user_is_kept_around_the_narrowed_relation() -> None:
    sql = (
        "select sum( amt )  as a -- paid (all)\n"
        "from (select * from shop.orders) join `shop`.items on oid=id"
    )
    plan = plan_of(sql)
    assert isinstance(plan, TotalsPlan)
    (part,) = plan.parts
    (one,) = part.relations

    text = parsed_query(sql, "q").over(
        {"shop.orders": "o", "shop.items": "i"},
        [NarrowedText(one.start, one.end, one.alias, "keys", "v.id <=> k.k0")],
    )

    assert text == (
        "select sum( amt )  as a -- paid (all)\n"
        "from (SELECT v.* FROM (select * from o AS `orders`) v LEFT SEMI JOIN keys k "
        "ON v.id <=> k.k0) join i AS `items` on oid=id"
    )


def test_a_narrowed_table_keeps_the_name_of_its_columns() -> None:
    query = parsed_query("SELECT count(shop.orders.id) AS n FROM shop.orders", "q")
    (table,) = query.tables

    text = query.over(
        {"shop.orders": "o"},
        [NarrowedText(table.start, table.end, "orders", "keys", "v.id <=> k.k0")],
    )

    assert text == (
        "SELECT count(orders.id) AS n FROM "
        "(SELECT v.* FROM o v LEFT SEMI JOIN keys k ON v.id <=> k.k0) AS `orders`"
    )


@pytest.mark.parametrize(
    ("how", "stored", "before", "now", "value"),
    [
        (Merge.SAME, "a", "a", "a", "a"),
        (Merge.COUNT, 5, 2, 1, 4),
        (Merge.SUM, 5, 2, 1, 4),
        (Merge.SUM, 5, None, None, 5),
        (Merge.SUM, None, None, None, None),
        (Merge.SUM, None, None, 3, 3),
        (Merge.SUM, Decimal("9" * 38), Decimal(1), Decimal("0.25"), Decimal("9" * 37 + "8.25")),
        (Merge.GREATEST, 5, 4, 3, 5),
        (Merge.GREATEST, 5, 5, 6, 6),
        (Merge.GREATEST, 5, 5, 5, 5),
        (Merge.LEAST, "b", "c", "a", "a"),
        (Merge.LEAST, date(2026, 1, 2), None, date(2026, 1, 3), date(2026, 1, 2)),
        (Merge.GREATEST, None, None, None, None),
    ],
)
def test_a_value_follows(how: Merge, stored: Any, before: Any, now: Any, value: Any) -> None:
    assert merged([how], [stored], [before], [now]) == [value]


@pytest.mark.parametrize(
    ("how", "stored", "before", "now"),
    [
        (Merge.SUM, 5, 5, None),
        (Merge.SUM, None, 5, 5),
        (Merge.GREATEST, 5, 5, 4),
        (Merge.GREATEST, 5, 5, None),
        (Merge.LEAST, 5, 5, 6),
        (Merge.LEAST, None, 5, 6),
    ],
)
def test_a_value_that_its_last_one_does_not_tell_is_unknown(
    how: Merge, stored: Any, before: Any, now: Any
) -> None:
    with pytest.raises(UnknownTotalError):
        merged([how], [stored], [before], [now])


def _merges_as(patch: Patch, planted: Callable[..., Any]) -> None:
    patch.setattr(totals, "_merged", planted)


def _last_extreme_stays(patch: Patch) -> None:
    real = totals._merged

    def planted(how: Merge, stored: Any, before: Any, now: Any) -> Any:
        if how is Merge.GREATEST and stored is not None:
            return max(v for v in (stored, now) if v is not None)
        return real(how, stored, before, now)

    _merges_as(patch, planted)


def _null_is_zero(patch: Patch) -> None:
    _merges_as(patch, lambda how, stored, before, now: (stored or 0) - (before or 0) + (now or 0))


def _before_is_forgotten(patch: Patch) -> None:
    _merges_as(patch, lambda how, stored, before, now: stored + now)


def _means_add_up(patch: Patch) -> None:
    patch.setattr(totals, "_merge_of_call", lambda *given, **named: Merge.SUM)


def _narrowed_by_name(patch: Patch) -> None:
    real = ParsedQuery.over

    def planted(self: Any, relations: Any, narrowed: Any = ()) -> str:
        spread = [
            NarrowedText(table.start, table.end, table.alias, one.keys, one.condition)
            for one in narrowed
            for table in self.tables
        ]
        return real(self, relations, spread)

    patch.setattr(ParsedQuery, "over", planted)


#: A fault -> how to plant it, and a query that shows it.
FAULTS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "what was there before is not taken away": (
        _before_is_forgotten, "SELECT count(*) AS n FROM orders WHERE st = 'a'",
    ),
    "a sum of nothing is 0": (
        _null_is_zero, "SELECT sum(amt) AS a FROM orders WHERE st = 'a'",
    ),
    "the greatest value stays after it went": (
        _last_extreme_stays, "SELECT max(amt) AS m FROM orders",
    ),
    "DISTINCT adds up over any parts": (
        lambda p: p.setattr(totals, "_counted", lambda group: None),
        "SELECT count(DISTINCT cust) AS c FROM orders",
    ),
    "a mean adds up": (_means_add_up, "SELECT avg(amt) AS a FROM orders"),
    "a total that another one reads is narrowed": (
        lambda p: p.setattr(totals, "_blocks", lambda top: iter(())),
        (
            "WITH t AS (SELECT sum(amt) AS s FROM orders) SELECT a.s, b.n FROM t a, "
            "(SELECT count(*) AS n FROM orders WHERE 9 > (SELECT s FROM t)) b"
        ),
    ),
    "a table is narrowed wherever it stands": (
        _narrowed_by_name,
        (
            "SELECT count(*) AS n FROM orders o WHERE EXISTS "
            "(SELECT 1 FROM orders i WHERE i.id = o.cust)"
        ),
    ),
}  # fmt: skip


def _is_right(sql: str, *, starts: int = 4) -> bool:
    try:
        for start in range(starts):
            follow(sql, histories(Random(start), 8), TABLES, Counts())
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

    assert isinstance(plan_of(sql), FullPlan) or _is_right(sql, starts=2)
