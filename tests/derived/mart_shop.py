"""A video shop: its tables, random histories of their rows, and a mart over them.

`Shop` answers in plain Python what the mart has to show: it reads lists of changes, no SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final

from polynya.model.config.derived import DerivedTask
from polynya.model.loader import load_project
from tests.projects import PROJECT

#: Columns and types of each table; the first is its key.
TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "city": {"city_id": "bigint", "name": "string"},
    "address": {"address_id": "bigint", "city_id": "bigint", "district": "string"},
    "customer": {
        "customer_id": "bigint", "address_id": "bigint", "last_name": "string", "note": "string",
    },
    "film": {"film_id": "bigint", "title": "string"},
    "inventory": {"inventory_id": "bigint", "film_id": "bigint", "quantity": "bigint"},
    "rental": {"rental_id": "bigint", "inventory_id": "bigint", "rented_at": "timestamp"},
    "payment": {
        "payment_id": "bigint", "rental_id": "bigint", "customer_id": "bigint",
        "amount": "bigint", "paid_at": "timestamp",
    },
}  # fmt: skip
BEGIN: Final = datetime(2026, 1, 20, tzinfo=UTC)
#: The last moment of the histories is less than so many hours after BEGIN.
HOURS: Final = 100 * 24
FIRST, LAST = date(2026, 1, 1), date(2026, 3, 31)
UNKNOWN: Final = "0" * 32
#: Gives the rows of a query over `sales`.
Answer = Callable[[str], list[tuple[Any, ...]]]

SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
defaults: {sequence_by: [seq], history: true}
datasets:
""" + "".join(
    f"  - {{name: {name}, path: {name}/*, keys: [{next(iter(columns))}]}}\n"
    for name, columns in TABLES.items()
)

MART = """\
apiVersion: polynya/v1
kind: data_mart
name: sales
from: [shop]
relationships:
  - {from: payment, to: rental, on: {rental_id: rental_id}}
  - {from: payment, to: customer, on: {customer_id: customer_id}}
  - {from: rental, to: inventory, on: {inventory_id: inventory_id}}
  - {from: inventory, to: film, on: {film_id: film_id}}
  - {from: customer, to: address, on: {address_id: address_id}}
  - {from: address, to: city, on: {city_id: city_id}}
dimensions:
  - name: customer
    type: 2
    table: customer
    keys: [customer_id]
    columns:
      - last_name
      - {name: loud_name, expression: "upper(last_name)"}
      - {name: district, table: address}
      - {name: city, table: city, column: name}
    before_first: BEFORE
  - name: film
    table: film
    keys: [film_id]
    columns: [title]
    unknown: {title: none}
  - {name: calendar, type: date, first: 2026-01-01, last: 2026-03-31, key: day_key}
facts:
  - name: payments
    table: payment
    keys: [payment_id]
    time: paid_at
    columns: [{name: inventory_id, table: rental}]
    dimensions:
      - customer
      - film
      - {dimension: calendar, as: paid}
    measures: {amount: amount, doubled: "amount * 2"}
  - name: customers_monthly
    kind: periodic_snapshot
    period: month
    table: customer
    keys: [customer_id]
    dimensions: [customer, {dimension: calendar, as: month}]
    columns: [note]
  - name: rentals
    kind: accumulating_snapshot
    table: rental
    keys: [rental_id]
    milestones:
      rented: rented_at
      paid: {table: payment, column: paid_at}
      paid_last: {table: payment, column: paid_at, pick: last}
    lags: {days_to_pay: [rented, paid]}
    dimensions:
      - film
      - {dimension: calendar, as: rented_day, at: rented}
      - {dimension: calendar, as: paid_day, at: paid}
"""


def mart_task(folder: Path, before_first: str = "first_version") -> DerivedTask:
    """The task that the mart becomes."""
    (folder / "tasks").mkdir(parents=True)
    (folder / "polynya.yml").write_text(PROJECT)
    (folder / "tasks" / "shop.yml").write_text(SHOP)
    (folder / "tasks" / "sales.yml").write_text(MART.replace("BEFORE", before_first))
    (task,) = (one for one in load_project(folder).tasks if isinstance(one, DerivedTask))
    return task


@dataclass(frozen=True, slots=True)
class Change:
    """A row of a table since a moment, or its deletion."""

    table: str
    key: int
    at: datetime
    values: tuple[Any, ...] | None


def moment(random: Random) -> datetime:
    """A time of the histories; many are equal, and some begin a month."""
    if random.randrange(8) == 0:
        return datetime(2026, random.randrange(2, 5), 1, tzinfo=UTC)
    return BEGIN + timedelta(hours=60 * random.randrange(HOURS // 60))


def row(table: str, key: int, random: Random) -> tuple[Any, ...]:
    """Values of all columns but the key; foreign keys may lead nowhere."""
    found: list[Any] = []
    for name, kind in list(TABLES[table].items())[1:]:
        if random.randrange(10) == 0:
            found.append(None)
        elif kind == "timestamp":
            found.append(moment(random))
        elif kind == "bigint":
            found.append(random.randrange(1, 6))
        else:
            found.append(f"{name}{random.randrange(3)}")
    return tuple(found)


def changes(random: Random, count: int) -> list[Change]:
    """Random changes, in the order of their times."""
    made = []
    for _ in range(count):
        table = random.choice(list(TABLES))
        key = random.randrange(1, 5)
        values = None if random.randrange(5) == 0 else row(table, key, random)
        made.append(Change(table, key, moment(random), values))
    return sorted(made, key=lambda change: change.at)


@dataclass(slots=True)
class Shop:
    """The changes of all rows, each list in its order; later ones count more at equal times."""

    before_first: str = "first_version"
    log: dict[tuple[str, int], list[Change]] = field(default_factory=dict)

    def take(self, change: Change) -> None:
        """Add a change."""
        self.log.setdefault((change.table, change.key), []).append(change)

    def versions(self, table: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the History view: columns, from, to, operation, deleted."""
        for (name, key), events in self.log.items():
            if name != table:
                continue
            known: tuple[Any, ...] = (None,) * (len(TABLES[table]) - 1)
            for event, following in zip(events, [*events[1:], None], strict=True):
                known = known if event.values is None else event.values
                until = None if following is None else following.at
                gone = event.values is None
                yield (key, *known, event.at, until, "D" if gone else "U", gone)

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of the Current view."""
        for name, key in self.log:
            values = self.as_of(table, key) if name == table else None
            if values is not None:
                yield values

    def as_of(
        self, table: str, key: int | None, at: datetime | None = None, *, extended: bool = False
    ) -> dict[str, Any] | None:
        """A row at a time, or now. `extended`: before the first time, as it was then."""
        if key is None:
            return None
        events = self.log.get((table, key), [])
        past = [event for event in events if at is None or event.at <= at]
        if not past and extended and events:
            past = [event for event in events if event.at == events[0].at]
        if not past or past[-1].values is None:
            return None
        return dict(zip(TABLES[table], (key, *past[-1].values), strict=True))

    def customer(self, key: int | None, at: datetime | None) -> tuple[Any, ...] | None:
        """What the dimension shows of a customer at a time; None for the unknown one."""
        if at is None or key is None:
            return None
        extends = self.before_first == "first_version"
        found = self.as_of("customer", key, at)
        if found is None and extends:
            alive = [
                event.at
                for event in self.log.get(("customer", key), [])
                if self.as_of("customer", key, event.at) is not None
            ]
            if alive and at < alive[0]:
                at = alive[0]
                found = self.as_of("customer", key, at)
        if found is None:
            return None
        address = self.as_of("address", found["address_id"], at, extended=extends) or {}
        city = self.as_of("city", address.get("city_id"), at, extended=extends) or {}
        name = found["last_name"]
        loud = None if name is None else name.upper()
        return (key, name, loud, address.get("district"), city.get("name"))

    def film_of_rental(self, rental: Mapping[str, Any] | None) -> int | None:
        """The film of a rental as far as the tables know it now."""
        inventory = self.as_of("inventory", (rental or {}).get("inventory_id")) or {}
        film = self.as_of("film", inventory.get("film_id"))
        return None if film is None else film["film_id"]

    def payments(self) -> dict[int, tuple[Any, ...]]:
        """By payment: inventory, customer as of then, film, day, amount, doubled amount."""
        found = {}
        for one in self.rows("payment"):
            rental = self.as_of("rental", one["rental_id"])
            amount = one["amount"]
            found[one["payment_id"]] = (
                (rental or {}).get("inventory_id"),
                self.customer(one["customer_id"], one["paid_at"]),
                self.film_of_rental(rental),
                day_key(one["paid_at"]),
                amount,
                None if amount is None else amount * 2,
            )
        return found

    def customers_monthly(self) -> dict[tuple[date, int], tuple[Any, ...]]:
        """By month and customer: last day, note, the customer as the month ended, day of month."""
        times = [
            event.at for (name, _), log in self.log.items() if name == "customer" for event in log
        ]
        found = {}
        for month in months(times):
            limit = next_month(month)
            # Nothing happens between two whole hours.
            last = datetime(limit.year, limit.month, 1, tzinfo=UTC) - timedelta(minutes=1)
            for (name, key), _ in self.log.items():
                row = self.as_of("customer", key, last) if name == "customer" else None
                if row is not None:
                    end = limit - timedelta(days=1)
                    month_key = day_key(datetime(month.year, month.month, 1, tzinfo=UTC))
                    found[month, key] = (end, row["note"], self.customer(key, last), month_key)
        return found

    def rentals(self) -> dict[int, tuple[Any, ...]]:
        """By rental: film, the times and days of its milestones, and the days between."""
        found = {}
        for one in self.rows("rental"):
            paid = sorted(
                payment["paid_at"]
                for payment in self.rows("payment")
                if payment["rental_id"] == one["rental_id"] and payment["paid_at"] is not None
            )
            first, last = (paid[0], paid[-1]) if paid else (None, None)
            rented = one["rented_at"]
            lag = (first.date() - rented.date()).days if first and rented else None
            found[one["rental_id"]] = (
                self.film_of_rental(one), rented, first, last, day_key(rented), day_key(first), lag,
            )  # fmt: skip
        return found


def day_key(at: datetime | None) -> int:
    """The key of a day in the calendar."""
    if at is None or not FIRST <= at.date() <= LAST:
        return -1
    return at.year * 10000 + at.month * 100 + at.day


def months(times: Sequence[datetime]) -> Iterator[date]:
    """Yield the first days of the months from the first time to the last one."""
    if times:
        month = min(times).date().replace(day=1)
        while month <= max(times).date():
            yield month
            month = next_month(month)


def next_month(month: date) -> date:
    """The first day of the next month."""
    return (month + timedelta(days=32)).replace(day=1)


def check(answer: Answer, shop: Shop) -> None:
    """Compare the tables of a mart with the answers of the shop.

    `answer` gives the rows of a query over `sales`, in SQL that DuckDB and Spark read.
    """
    customer = (
        "CASE WHEN c.customer_key = '" + UNKNOWN + "' THEN NULL ELSE c.customer_id END, "
        "c.last_name, c.loud_name, c.district, c.city"
    )
    join = "JOIN sales.customer c ON c.customer_key = f.customer_key "
    film = "JOIN sales.film m ON m.film_key = f.film_key "

    shown = answer(
        "SELECT f.payment_id, f.inventory_id, m.film_id, f.paid_key, f.amount, f.doubled, "
        f"{customer} FROM sales.payments f {join} {film}"
        "JOIN sales.calendar d ON d.day_key = f.paid_key"
    )
    assert len(shown) == len({row[0] for row in shown})
    assert {
        row[0]: (row[1], row[6:] if row[6] is not None else None, *row[2:6]) for row in shown
    } == shop.payments()

    shown = answer(
        f"SELECT f.period_start, f.customer_id, f.period_end, f.note, f.month_key, {customer} "
        f"FROM sales.customers_monthly f {join} JOIN sales.calendar d ON d.day_key = f.month_key"
    )
    assert len(shown) == len({row[:2] for row in shown})
    assert {
        (as_date(row[0]), row[1]): (as_date(row[2]), row[3], row[5:], row[4]) for row in shown
    } == shop.customers_monthly()

    shown = answer(
        "SELECT f.rental_id, m.film_id, f.rented, f.paid, f.paid_last, f.rented_day_key, "
        f"f.paid_day_key, f.days_to_pay FROM sales.rentals f {film}"
    )
    assert len(shown) == len({row[0] for row in shown})
    assert {row[0]: row[1:] for row in shown} == shop.rentals()

    check_versions(answer, shop)


def check_versions(answer: Answer, shop: Shop) -> None:
    """Every version is right when it begins and as it ends, and no two say the same thing."""
    rows = answer(
        "SELECT customer_id, last_name, loud_name, district, city, valid_from, valid_to, "
        "is_current, customer_key FROM sales.customer ORDER BY customer_id, valid_from"
    )
    assert len({row[-1] for row in rows}) == len(rows)
    members = [row for row in rows if row[-1] != UNKNOWN]
    assert len(members) == len(rows) - 1
    for *values, begin, end, current, _ in members:
        assert begin < end
        assert current == (end.year == 9999)
        assert shop.customer(values[0], begin) == tuple(values)
    for one, following in pairwise(members):
        if one[0] == following[0]:
            assert one[6] <= following[5]
            assert one[6] < following[5] or one[:5] != following[:5]
    times = {event.at for log in shop.log.values() for event in log}
    for key in {key for name, key in shop.log if name == "customer"}:
        for at in times:
            valid = [tuple(row[:5]) for row in members if row[0] == key and row[5] <= at < row[6]]
            expected = shop.customer(key, at)
            assert valid == ([] if expected is None else [expected])


def as_date(value: Any) -> Any:
    """The date of a time, where an engine has a time."""
    return value.date() if hasattr(value, "date") else value
