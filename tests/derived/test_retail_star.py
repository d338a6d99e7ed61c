"""A star in the shape of TPC-DS answers as plain SQL over its sources does, at each instant.

The sources are those of TPC-DS by name and key: sales and returns of stores, items and customers
with their addresses, stores, promotions, stocks. Their histories are random: updates, deletes, late
events, foreign keys that lead nowhere. Each question is asked twice, in DuckDB: over the star, and
over the tables and their histories, where a version is looked up by the time of the fact.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import duckdb
import pytest
import sqlglot

from polynya.model.config.derived import DerivedTask
from polynya.model.loader import load_project
from tests.projects import PROJECT

SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
#: Table -> its keys, and its columns with their types.
TABLES: Final[Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]]] = {
    "item": (
        ("i_item_sk",),
        {"i_item_sk": "int", "i_brand": "string", "i_category": "string", "i_manager": "int"},
    ),
    "customer": (("c_customer_sk",), {"c_customer_sk": "int", "c_addr_sk": "int"}),
    "customer_address": (
        ("ca_address_sk",),
        {"ca_address_sk": "int", "ca_city": "string", "ca_zip": "int"},
    ),
    "store": (("s_store_sk",), {"s_store_sk": "int", "s_city": "string"}),
    "promotion": (("p_promo_sk",), {"p_promo_sk": "int", "p_channel": "string"}),
    "store_sales": (
        ("ss_ticket", "ss_item_sk"),
        {
            "ss_ticket": "int", "ss_item_sk": "int", "ss_customer_sk": "int",
            "ss_store_sk": "int", "ss_promo_sk": "int", "ss_quantity": "int",
            "ss_price": "decimal(9,2)", "ss_sold_at": "timestamp",
        },
    ),
    "store_returns": (
        ("sr_ticket", "sr_item_sk"),
        {
            "sr_ticket": "int", "sr_item_sk": "int", "sr_reason": "string",
            "sr_amount": "decimal(9,2)", "sr_returned_at": "timestamp",
        },
    ),
    "inventory": (
        ("inv_item_sk", "inv_store_sk"),
        {"inv_item_sk": "int", "inv_store_sk": "int", "inv_quantity": "int"},
    ),
}  # fmt: skip
_HEADER: Final = {
    "hdr__from_timestamp": "timestamp", "hdr__to_timestamp": "timestamp",
    "hdr__operation": "string", "hdr__deleted": "boolean",
}  # fmt: skip
_DUCKDB: Final = {"string": "varchar", "timestamp": "timestamptz", "int": "integer"}
BEGIN: Final = datetime(2026, 1, 10, tzinfo=UTC)
Row = dict[str, Any]

RETAIL = """\
apiVersion: polynya/v1
kind: storage
name: retail
schema: retail
landing: {path: retail, format: json}
defaults: {sequence_by: [seq], history: true}
datasets:
""" + "".join(
    f"  - {{name: {name}, path: {name}/*, keys: [{', '.join(keys)}]}}\n"
    for name, (keys, _) in TABLES.items()
)
STAR = """\
apiVersion: polynya/v1
kind: data_mart
name: star
from: [retail]
relationships:
  - {from: store_sales, to: item, on: {ss_item_sk: i_item_sk}}
  - {from: store_sales, to: customer, on: {ss_customer_sk: c_customer_sk}}
  - {from: store_sales, to: store, on: {ss_store_sk: s_store_sk}}
  - {from: store_sales, to: promotion, on: {ss_promo_sk: p_promo_sk}}
  - {from: store_returns, to: store_sales, on: {sr_ticket: ss_ticket, sr_item_sk: ss_item_sk}}
  - {from: store_returns, to: item, on: {sr_item_sk: i_item_sk}, name: returned_item}
  - {from: inventory, to: item, on: {inv_item_sk: i_item_sk}}
  - {from: inventory, to: store, on: {inv_store_sk: s_store_sk}}
  - {from: customer, to: customer_address, on: {c_addr_sk: ca_address_sk}}
dimensions:
  - name: item
    type: 2
    table: item
    keys: [i_item_sk]
    columns: [i_brand, i_category, i_manager]
    before_first: unknown
  - name: customer
    type: 2
    table: customer
    keys: [c_customer_sk]
    columns: [{name: ca_city, table: customer_address}]
    before_first: unknown
  - {name: store, table: store, keys: [s_store_sk], columns: [s_city]}
  - {name: promotion, table: promotion, keys: [p_promo_sk], columns: [p_channel]}
  - {name: date_dim, type: date, first: 2026-01-01, last: 2026-06-30}
facts:
  - name: sales
    table: store_sales
    keys: [ss_ticket, ss_item_sk]
    time: ss_sold_at
    dimensions: [item, customer, store, promotion, {dimension: date_dim, as: sold}]
    measures: {ss_quantity: ss_quantity, ss_price: ss_price}
  - name: returns
    table: store_returns
    keys: [sr_ticket, sr_item_sk]
    time: sr_returned_at
    columns: [sr_reason]
    dimensions:
      - {dimension: item, via: [returned_item]}
      - {dimension: date_dim, as: returned}
    measures: {sr_amount: sr_amount}
  - name: returned_sales
    kind: accumulating_snapshot
    table: store_sales
    keys: [ss_ticket, ss_item_sk]
    milestones:
      sold: ss_sold_at
      returned: {table: store_returns, column: sr_returned_at}
    lags: {days: [sold, returned]}
    dimensions: [store, {dimension: date_dim, as: sold_day, at: sold}]
  - name: stock
    kind: periodic_snapshot
    period: month
    table: inventory
    keys: [inv_item_sk, inv_store_sk]
    dimensions: [item, store]
    measures: {inv_quantity: inv_quantity}
"""


def _as_of(table: str, alias: str, on: str, at: str) -> str:
    """Join with the version of a row that was valid at a time."""
    return (
        f"LEFT JOIN retail.{table}__history {alias} ON {on} "
        f"AND NOT {alias}.hdr__deleted AND {alias}.hdr__from_timestamp <= {at} "
        f"AND {at} < coalesce({alias}.hdr__to_timestamp, TIMESTAMPTZ '9999-01-01 00:00:00Z')"
    )


_ITEM: Final = _as_of("item", "i", "i.i_item_sk = f.ss_item_sk", "f.ss_sold_at")
_MONTH: Final = (
    "CASE WHEN f.ss_sold_at BETWEEN TIMESTAMPTZ '2026-01-01 00:00:00Z' AND "
    "TIMESTAMPTZ '2026-06-30 23:59:59Z' THEN month(f.ss_sold_at) END"
)
#: Question -> over the star, over the sources. The numbers are those of TPC-DS with its shape.
QUESTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "3, 52, 42: sales of brands by month": (
        (
            "SELECT d.month, i.i_brand, i.i_category, sum(f.ss_price), count(*) "
            "FROM star.sales f "
            "JOIN star.date_dim d ON d.date_dim_key = f.sold_key "
            "JOIN star.item i ON i.item_key = f.item_key GROUP BY ALL"
        ),
        (
            f"SELECT {_MONTH} AS month, i.i_brand, i.i_category, sum(f.ss_price), count(*) "
            f"FROM retail.store_sales f {_ITEM} GROUP BY ALL"
        ),
    ),
    "55: brands of a manager": (
        (
            "SELECT i.i_brand, sum(f.ss_price) "
            "FROM star.sales f "
            "JOIN star.item i ON i.item_key = f.item_key WHERE i.i_manager = 1 GROUP BY ALL"
        ),
        (
            f"SELECT i.i_brand, sum(f.ss_price) FROM retail.store_sales f {_ITEM} "
            "WHERE i.i_manager = 1 GROUP BY ALL"
        ),
    ),
    "19: customers who buy in another city": (
        (
            "SELECT c.ca_city, s.s_city, count(*), sum(f.ss_quantity) "
            "FROM star.sales f "
            "JOIN star.customer c ON c.customer_key = f.customer_key "
            "JOIN star.store s ON s.store_key = f.store_key "
            "WHERE c.ca_city <> s.s_city GROUP BY ALL"
        ),
        "SELECT a.ca_city, s.s_city, count(*), sum(f.ss_quantity) FROM retail.store_sales f "
        + _as_of("customer", "c", "c.c_customer_sk = f.ss_customer_sk", "f.ss_sold_at")
        + " "
        + _as_of("customer_address", "a", "a.ca_address_sk = c.c_addr_sk", "f.ss_sold_at")
        + " LEFT JOIN retail.store s ON s.s_store_sk = f.ss_store_sk "
        "WHERE a.ca_city <> s.s_city GROUP BY ALL",
    ),
    "7, 26: items with and without a promotion": (
        (
            "SELECT i.i_item_sk, p.p_channel, sum(f.ss_quantity), max(f.ss_price) "
            "FROM star.sales f "
            "JOIN star.item i ON i.item_key = f.item_key "
            "JOIN star.promotion p ON p.promotion_key = f.promotion_key GROUP BY ALL"
        ),
        (
            f"SELECT i.i_item_sk, p.p_channel, sum(f.ss_quantity), max(f.ss_price) "
            f"FROM retail.store_sales f {_ITEM} "
            "LEFT JOIN retail.promotion p ON p.p_promo_sk = f.ss_promo_sk GROUP BY ALL"
        ),
    ),
    "29, 50: sales with their returns": (
        (
            "SELECT s.s_city, r.sr_reason, sum(f.ss_quantity), sum(r.sr_amount) "
            "FROM star.sales f "
            "LEFT JOIN star.returns r ON r.sr_ticket = f.ss_ticket AND r.sr_item_sk = f.ss_item_sk "
            "JOIN star.store s ON s.store_key = f.store_key GROUP BY ALL"
        ),
        (
            "SELECT s.s_city, r.sr_reason, sum(f.ss_quantity), sum(r.sr_amount) "
            "FROM retail.store_sales f LEFT JOIN retail.store_returns r "
            "ON r.sr_ticket = f.ss_ticket AND r.sr_item_sk = f.ss_item_sk "
            "LEFT JOIN retail.store s ON s.s_store_sk = f.ss_store_sk GROUP BY ALL"
        ),
    ),
    "brands of returned items as of their return": (
        (
            "SELECT i.i_brand, sum(f.sr_amount), count(*) FROM star.returns f "
            "JOIN star.item i ON i.item_key = f.item_key GROUP BY ALL"
        ),
        "SELECT i.i_brand, sum(f.sr_amount), count(*) FROM retail.store_returns f "
        + _as_of("item", "i", "i.i_item_sk = f.sr_item_sk", "f.sr_returned_at")
        + " GROUP BY ALL",
    ),
    "50: days until a return": (
        (
            "SELECT s.s_city, f.days, count(*) "
            "FROM star.returned_sales f "
            "JOIN star.store s ON s.store_key = f.store_key GROUP BY ALL"
        ),
        (
            "SELECT s.s_city, "
            "date_diff('day', f.ss_sold_at::DATE, r.sr_returned_at::DATE) AS days, count(*) "
            "FROM retail.store_sales f LEFT JOIN retail.store_returns r "
            "ON r.sr_ticket = f.ss_ticket AND r.sr_item_sk = f.ss_item_sk "
            "LEFT JOIN retail.store s ON s.s_store_sk = f.ss_store_sk GROUP BY ALL"
        ),
    ),
    "21, 22, 37: stocks as each month ended": (
        (
            "SELECT f.period_start::DATE, i.i_brand, sum(f.inv_quantity), count(*) "
            "FROM star.stock f "
            "JOIN star.item i ON i.item_key = f.item_key GROUP BY ALL"
        ),
        "SELECT m.month::DATE, i.i_brand, sum(f.inv_quantity), count(*) FROM ("
        "SELECT month, month + INTERVAL 1 MONTH - INTERVAL 1 MICROSECOND AS ended FROM ("
        "SELECT unnest(generate_series(date_trunc('month', min(hdr__from_timestamp)), "
        "max(hdr__from_timestamp), INTERVAL 1 MONTH)) AS month "
        "FROM retail.inventory__history)) m JOIN retail.inventory__history f "
        "ON NOT f.hdr__deleted AND f.hdr__from_timestamp <= m.ended "
        "AND m.ended < coalesce(f.hdr__to_timestamp, TIMESTAMPTZ '9999-01-01 00:00:00Z') "
        + _as_of("item", "i", "i.i_item_sk = f.inv_item_sk", "m.ended")
        + " GROUP BY ALL",
    ),
}


@dataclass(slots=True)
class Retail:
    """The events of all rows in the order of their times, which are all different."""

    log: dict[tuple[str, tuple[Any, ...]], list[tuple[datetime, Row | None]]] = field(
        default_factory=dict
    )
    _taken: set[datetime] = field(default_factory=set)

    def change(self, random: Random) -> None:
        """Insert, update or delete one row, at any time."""
        name = random.choice([*TABLES, *["store_sales"] * 6, *["store_returns"] * 2])
        keys, columns = TABLES[name]
        row = {column: _value(column, kind, random) for column, kind in columns.items()}
        for key in keys:
            row[key] = random.randrange(1, 15 if key.endswith("ticket") else 5)
        while (at := BEGIN + timedelta(minutes=random.randrange(100 * 24 * 60))) in self._taken:
            pass
        self._taken.add(at)
        place = name, tuple(row[key] for key in keys)
        event = None if random.randrange(6) == 0 else row
        self.log.setdefault(place, []).append((at, event))
        self.log[place].sort(key=lambda one: one[0])

    def current(self, name: str) -> Iterator[Row]:
        """The rows of the Current view."""
        for (table, _), events in self.log.items():
            if table == name and events[-1][1] is not None:
                yield events[-1][1]

    def versions(self, name: str) -> Iterator[Row]:
        """The rows of the History view."""
        keys, columns = TABLES[name]
        for (table, values), events in self.log.items():
            if table != name:
                continue
            known: Row = dict.fromkeys(columns) | dict(zip(keys, values, strict=True))
            for (at, row), following in zip(events, [*events[1:], None], strict=True):
                known = known if row is None else row
                until = None if following is None else following[0]
                header = (at, until, "U" if row else "D", row is None)
                yield known | dict(zip(_HEADER, header, strict=True))


def _value(column: str, kind: str, random: Random) -> Any:
    if random.randrange(8) == 0:
        return None
    number = random.randrange(1, 6)
    match kind:
        case "string":
            return "abcde"[number - 1]
        case "timestamp":
            return BEGIN + timedelta(minutes=random.randrange(-10_000, 100 * 24 * 60))
        case "int":
            return number
        case _:
            return f"{number}.25"


class Star:
    """The sources and the star in DuckDB."""

    def __init__(self, task: DerivedTask) -> None:
        self.database = duckdb.connect(":memory:", config={"threads": 1})
        self.database.execute("SET TimeZone = 'UTC'; CREATE SCHEMA retail; CREATE SCHEMA star")
        self.database.execute("CREATE MACRO weekday(day) AS isodow(day) - 1")
        for name, (_, columns) in TABLES.items():
            for table, kinds in ((name, columns), (f"{name}__history", {**columns, **_HEADER})):
                listed = ", ".join(f"{c} {_DUCKDB.get(kind, kind)}" for c, kind in kinds.items())
                self.database.execute(f"CREATE TABLE retail.{table} ({listed})")
        self.sql = {
            name: sqlglot.transpile(query.text, read="spark", write="duckdb")[0]
            for name, query in task.queries.items()
        }

    def derive(self, retail: Retail) -> None:
        """Derive the star from the sources as they are now."""
        for name in TABLES:
            self._fill(name, list(retail.current(name)))
            self._fill(f"{name}__history", list(retail.versions(name)))
        for name, sql in self.sql.items():
            self.database.execute(f"CREATE OR REPLACE TABLE star.{name} AS {sql}")

    def _fill(self, table: str, rows: list[Row]) -> None:
        self.database.execute(f"DELETE FROM retail.{table}")
        if rows:
            listed = ", ".join(f"({', '.join(map(_literal, row.values()))})" for row in rows)
            self.database.execute(f"INSERT INTO retail.{table} VALUES {listed}")

    def answer(self, sql: str) -> Counter[tuple[Any, ...]]:
        """The rows of a query with their numbers."""
        return Counter(self.database.sql(sql).fetchall())


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{value}'"


def check(star: Star, retail: Retail) -> int:
    """Ask every question twice; how many rows answered."""
    star.derive(retail)
    rows = 0
    for question, (over_star, over_sources) in QUESTIONS.items():
        found, wanted = star.answer(over_star), star.answer(over_sources)
        assert found == wanted, (question, found - wanted, wanted - found)
        rows += len(wanted)
    return rows


@pytest.fixture
def task(tmp_path: Path) -> DerivedTask:
    """The task that the star becomes."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "polynya.yml").write_text(PROJECT)
    (tmp_path / "tasks" / "retail.yml").write_text(RETAIL)
    (tmp_path / "tasks" / "star.yml").write_text(STAR)
    (task,) = (one for one in load_project(tmp_path).tasks if isinstance(one, DerivedTask))
    return task


@pytest.mark.slow
def test_a_star_answers_as_its_sources_do_at_each_instant(task: DerivedTask) -> None:
    star, rows = Star(task), 0
    for seed in range(SEED, SEED + 10):
        random, retail = Random(seed), Retail()
        for _ in range(4):
            for _ in range(80):
                retail.change(random)
            try:
                rows += check(star, retail)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}") from error
    assert rows > 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "text", "fault"),
    [
        ("sales", "`item`.valid_to > t.", "`item`.valid_from <= t."),
        ("sales", "LEFT JOIN `star`.`item`", "JOIN `star`.`item`"),
        ("customer", "CASE WHEN NOT hdr__deleted THEN `ca_city` END", "`ca_city`"),
        ("item", "WHERE NOT `version_is_gone`", ""),
        ("stock", "`version_ends` >= p.", "`version_begins` >= p."),
        ("returned_sales", "min(`sr_returned_at`)", "min(`sr_returned_at`) + INTERVAL 1 DAY"),
    ],
)
def test_a_planted_fault_shows_in_an_answer(
    task: DerivedTask, table: str, text: str, fault: str
) -> None:
    query = task.queries[table]
    assert text in query.text
    wrong = query.model_copy(update={"text": query.text.replace(text, fault)})
    star = Star(task.model_copy(update={"queries": {**task.queries, table: wrong}}))

    with pytest.raises(AssertionError):
        for seed in range(SEED, SEED + 20):
            random, retail = Random(seed), Retail()
            for _ in range(200):
                retail.change(random)
            check(star, retail)
        return
