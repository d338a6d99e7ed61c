"""Three tables of a shop and what happens to them: from a seed, so that a failure can be repeated.

A first load, then inserts, updates, deletes, records that come back, events that land late, events
that land twice, and lines that are not records. What was landed is kept for the fold.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from tests.oracle.fold import DELETE, UPSERT, Event, Key
from tests.oracle.values import canonical, to_iso

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
#: Keys from here on are inserted once and never touched again: one in front of every file.
FIRST_MARKER: Final = 1_000_000_000
CONTROL: Final = ("op", "seq", "at")
_NAMES: Final = ("Ann", "Zoë", "O'Neil", 'Ben "B"', "日本", "a\\b", "null", "", " two words ")
_CITIES: Final = ("Oslo", "Ålesund", "São Paulo", None)
#: Chances in percent of what an event is; the rest are updates.
INSERTS, DELETES, RETURNS = 18, 12, 4
#: Chances in percent of what happens to it on its way.
_LATE, _TWICE, _GARBAGE = 5, 2, 1
#: The longest way of a late event, in files.
_LATEST: Final = 4


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the shop. `values` makes the columns of a record beside its key and `batch`."""

    name: str
    format: str
    keys: tuple[str, ...]
    types: Mapping[str, str]
    values: Callable[[random.Random], dict[str, Any]]
    history: bool = False
    soft: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Data columns without the keys."""
        return (*(name for name in self.types if name not in self.keys), "batch")

    @property
    def ending(self) -> str:
        """Of the names of its files."""
        return ".csv" if self.format == "csv" else ".json"


def _customer(chance: random.Random) -> dict[str, Any]:
    return {
        "name": chance.choice(_NAMES),
        "city": chance.choice(_CITIES),
        "rating": chance.randrange(100) / 4,
        "joined": date(2020, 2, 28) + timedelta(days=chance.randrange(1000)),
        "vip": chance.choice((True, False, None)),
    }


def _order(chance: random.Random) -> dict[str, Any]:
    return {
        "customer": chance.randrange(30_000),
        "state": chance.choice(("new", "paid", "sent", "back")),
        "amount": Decimal(chance.randrange(10_000_000)).scaleb(-2),
        "placed": EPOCH + timedelta(microseconds=chance.randrange(10**12)),
    }


def _payment(chance: random.Random) -> dict[str, Any]:
    return {
        "method": chance.choice(("card", "cash", "a,b", 'say "hi"', None)),
        "paid": Decimal(chance.randrange(1_000_000)).scaleb(-2),
    }


CUSTOMERS: Final = Table(
    "customers",
    "json",
    ("id",),
    {
        "id": "bigint",
        "name": "string",
        "city": "string",
        "rating": "double",
        "joined": "date",
        "vip": "boolean",
    },
    _customer,
    history=True,
)
ORDERS: Final = Table(
    "orders",
    "json",
    ("id",),
    {
        "id": "bigint",
        "customer": "bigint",
        "state": "string",
        "amount": "decimal(12,2)",
        "placed": "timestamp",
    },
    _order,
)
PAYMENTS: Final = Table(
    "payments",
    "csv",
    ("order_id", "number"),
    {"order_id": "bigint", "number": "int", "method": "string", "paid": "decimal(12,2)"},
    _payment,
    soft=True,
)
TABLES: Final = (CUSTOMERS, ORDERS, PAYMENTS)
#: Parts of all records that are of a table.
SHARES: Final = {"customers": 0.1, "orders": 0.65, "payments": 0.25}


@dataclass(frozen=True, slots=True)
class Planned:
    """An event that has its place in the order and has not landed."""

    key: Key
    sequence: int
    op: str
    at: datetime


@dataclass
class Feed:
    """What one table lands, file by file."""

    table: Table
    chance: random.Random
    deletes: int = DELETES
    events: list[Event] = field(default_factory=list)
    lines: int = 0
    garbage: int = 0
    files: int = 0
    _live: list[Key] = field(default_factory=list)
    _gone: list[Key] = field(default_factory=list)
    _keys: int = 0
    _sequence: int = 0
    _late: deque[tuple[int, Planned]] = field(default_factory=deque)

    def load(self, count: int) -> str:
        """The text of a file of the first full load: rows without an operation and an order."""
        rows = []
        for _ in range(count):
            key = self._new_key()
            values = {**self.table.values(self.chance), "batch": self.files}
            self._live.append(key)
            self.events.append(Event(key, 0, UPSERT, values, EPOCH, is_load=True))
            rows.append(self._row(self.events[-1], control=False))
        self.lines += count
        self.files += 1
        return self._text(rows, control=False)

    def changes(self, count: int, *, now: datetime | None = None) -> str:
        """The text of a file of so many changes. Their time is `now`, or follows their sequence.

        In front stands the insert of a record that nothing touches again.
        """
        marker = self._marker(self.files)
        rows: list[str | dict[str, Any]] = [self._land(self._planned(marker, UPSERT, now))]
        while self._late and self._late[0][0] <= self.files:
            rows.append(self._land(self._late.popleft()[1]))
        while len(rows) < count:
            rows += self._next(now)
        self.lines += len(rows)
        self.files += 1
        return self._text(rows, control=True)

    def _next(self, now: datetime | None) -> list[str | dict[str, Any]]:
        """One more line; none for an event that is late, two for one that lands twice."""
        if self._happens(_GARBAGE):
            self.garbage += 1
            return [self._spoiled()]
        planned = self._change(now)
        if self._happens(_LATE):
            self._late.append((self.files + self.chance.randint(1, _LATEST), planned))
            self._late = deque(sorted(self._late, key=lambda one: one[0]))
            return []
        row = self._land(planned)
        if self._happens(_TWICE):
            self.events.append(self.events[-1])
            return [row, row]
        return [row]

    def _change(self, now: datetime | None) -> Planned:
        drawn = self.chance.randrange(100)
        if drawn < RETURNS and self._gone:
            key = self._take(self._gone)
            self._live.append(key)
        elif drawn < RETURNS + INSERTS or not self._live:
            key = self._new_key()
            self._live.append(key)
        elif drawn < RETURNS + INSERTS + self.deletes:
            key = self._take(self._live)
            self._gone.append(key)
            return self._planned(key, DELETE, now)
        else:
            key = self.chance.choice(self._live)
        return self._planned(key, UPSERT, now)

    def _planned(self, key: Key, op: str, now: datetime | None) -> Planned:
        self._sequence += 1
        return Planned(key, self._sequence, op, now or EPOCH + timedelta(seconds=self._sequence))

    def _land(self, planned: Planned) -> dict[str, Any]:
        values: dict[str, Any] = {}
        if planned.op == UPSERT:
            values = {**self.table.values(self.chance), "batch": self.files}
        event = Event(planned.key, planned.sequence, planned.op, values, planned.at)
        self.events.append(event)
        return self._row(event, control=True)

    def _row(self, event: Event, *, control: bool) -> dict[str, Any]:
        values = {name: event.values.get(name) for name in self.table.columns}
        row = {**dict(zip(self.table.keys, event.key, strict=True)), **values}
        if control:
            op = "D" if event.op == DELETE else "U"
            row |= {"op": op, "seq": event.sequence, "at": to_iso(event.timestamp)}
        return row

    def _text(self, rows: Sequence[str | dict[str, Any]], *, control: bool) -> str:
        if self.table.format == "csv":
            names = [*self.table.keys, *self.table.columns, *(CONTROL if control else ())]
            header = ",".join(names) + "\n"
            return header + "".join(r if isinstance(r, str) else _csv(r, names) for r in rows)
        return "".join(r if isinstance(r, str) else _json(r) for r in rows)

    def _spoiled(self) -> str:
        """A line that is no record, or has no key or no place in the order."""
        if self.table.format == "csv":
            width = len(self.table.keys) + len(self.table.columns) + len(CONTROL)
            return self.chance.choice(("cut,off\n", "," * (width - 1) + "\n"))
        key = f'"{self.table.keys[0]}"'
        spoiled = (
            f'{{{key}:7,"op":"U","se\n',
            "nothing of JSON\n",
            f'{{{key}:null,"op":"U","seq":1,"at":"2026-01-01T00:00:00Z"}}\n',
            f'{{{key}:7,"op":"U","seq":null,"at":"2026-01-01T00:00:00Z"}}\n',
        )
        return self.chance.choice(spoiled)

    def _new_key(self) -> Key:
        self._keys += 1
        return self._key(self._keys)

    def _marker(self, file: int) -> Key:
        return self._key(FIRST_MARKER + file)

    def _key(self, number: int) -> Key:
        return (number, number % 3)[: len(self.table.keys)]

    def _take(self, keys: list[Key]) -> Key:
        """Take one of the keys out, in constant time."""
        place = self.chance.randrange(len(keys))
        keys[place], keys[-1] = keys[-1], keys[place]
        return keys.pop()

    def _happens(self, percent: int) -> bool:
        return self.chance.randrange(100) < percent


def feeds(
    seed: int, tables: Sequence[Table] = TABLES, *, deletes: int = DELETES
) -> dict[str, Feed]:
    """A feed for each table; `deletes` is the chance of one in percent."""
    return {one.name: Feed(one, random.Random(f"{seed} {one.name}"), deletes) for one in tables}


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(canonical(dict(row)), ensure_ascii=False) + "\n"


def _csv(row: Mapping[str, Any], names: Sequence[str]) -> str:
    text = io.StringIO()
    values = (canonical(row.get(name)) for name in names)
    csv.writer(text, lineterminator="\n").writerow(["" if v is None else v for v in values])
    return text.getvalue()
