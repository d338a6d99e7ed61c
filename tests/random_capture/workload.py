"""Sessions that change rows and tables at random, and write down what they did in the database."""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.random_capture.source import Column, Source

#: Keys of rows that come and go in large transactions, above those of all other rows.
LARGE = 1_000_000


@dataclass
class Table:
    """A table as it is now.

    Attributes:
        defaults: of columns that came with one, as SQL.
    """

    name: str
    keys: tuple[Column, ...]
    columns: list[Column] = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)

    @property
    def takes_large(self) -> bool:
        """Whether its key has room for the rows of large transactions."""
        return len(self.keys) == 1 and self.keys[0].type.ddl in {"int", "integer"}


class Workload:
    """Some tables of a source, and the sessions that change them until they are stopped."""

    def __init__(self, source: Source, server: Any, *, seed: str, large: int, pause: float) -> None:
        """With `large` rows in large transactions, and a pause of each session in seconds."""
        self._source, self._server = source, server
        self._large, self._pause = large, pause
        self._chance = random.Random(f"{seed}/tables")
        self._numbers, self._revisions = itertools.count(), itertools.count(1)
        self._stop = threading.Event()
        self.counts: Counter[str] = Counter()
        self.broken: BaseException | None = None
        #: A session holds its own while it takes a step; a change of a table needs all of them.
        self._steps = [threading.Lock() for _ in range(3)]
        #: Held while a table is changed: the server is not killed then.
        self.changing = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(lock, random.Random(f"{seed}/{number}")))
            for number, lock in enumerate(self._steps)
        ]
        self._threads.append(
            threading.Thread(target=self._change_tables, args=(random.Random(f"{seed}/ddl"),))
        )
        types = list(source.types)
        self._chance.shuffle(types)
        share = -(-len(types) // len(source.keys))
        self.tables = [
            # Each type is in a table; the first of all has each of them.
            Table(f"t{number}", keys, [
                self._column(one)
                for one in (types if number == 0 else types[number * share : (number + 1) * share])
            ])
            for number, keys in enumerate(source.keys)
        ]  # fmt: skip

    def prepare(self, rows: int) -> None:
        """Make the tables, with so many rows to begin with."""
        session = self._source.connect(self._server)
        for statement in self._source.setup:
            session.run(statement)
        session.close()
        session = self._source.connect(self._server)
        for table in self.tables:
            for statement in self._create(table):
                session.run(statement)
            for _ in range(rows):
                with suppress(*self._source.errors):  # a key that is there
                    session.run(self._insert(table, self._chance))
        session.close()

    def start(self) -> None:
        """Begin; returns at once."""
        for one in self._threads:
            one.start()

    def stop(self) -> None:
        """Stop after the steps at work. Raises what ended a session that should go on."""
        self._stop.set()
        for one in self._threads:
            one.join(180)
        if self.broken is not None:
            raise self.broken

    def insert_one(self, table: Table, session: Any) -> None:
        """A row more, whatever its key."""
        for _ in range(500):
            with suppress(*self._source.errors):
                session.run(self._insert(table, self._chance))
                return

    def change_one(self, table: Table, session: Any, chance: random.Random) -> None:
        """A random change of rows of a table, if the database takes it."""
        with suppress(*self._source.errors):
            session.run(self._change(table, chance))

    # ---- rows ----

    def _work(self, lock: threading.Lock, chance: random.Random) -> None:
        session: Any = None
        try:
            while not self._stop.wait(self._pause):
                with lock:
                    if session is None and (session := self._connected()) is None:
                        continue
                    if not self._step(session, chance):
                        session = None
        except BaseException as error:
            self.broken = error
            raise

    def _connected(self) -> Any:
        with suppress(*self._source.errors):
            return self._source.connect(self._server)
        return None

    def _step(self, session: Any, chance: random.Random) -> bool:
        """Take a step; whether the session still lives."""
        try:
            for statement in self._statements(chance):
                session.run(statement)
            self.counts["steps"] += 1
        except self._source.errors:
            try:
                session.run("ROLLBACK")
            except self._source.errors:
                self.counts["sessions lost"] += 1
                return False
            self.counts["refused"] += 1
        return True

    def _statements(self, chance: random.Random) -> list[str]:
        table = chance.choice(self.tables)
        if table.takes_large and chance.random() < 0.02:
            return ["BEGIN", *self._large_transaction(table, chance), "COMMIT"]
        if chance.random() < 0.6:
            return [self._change(table, chance)]
        changes = [
            self._change(chance.choice(self.tables), chance) for _ in range(chance.randint(1, 6))
        ]
        if chance.random() < 0.3:
            undone = self._change(table, chance)
            changes += ["SAVEPOINT here", undone, "ROLLBACK TO SAVEPOINT here"]
        return ["BEGIN", *changes, chance.choice(("COMMIT", "COMMIT", "ROLLBACK"))]

    def _change(self, table: Table, chance: random.Random) -> str:
        (kind,) = chance.choices(("insert", "update", "delete", "key"), (35, 45, 12, 8))
        if kind == "insert":
            return self._insert(table, chance)
        where = " AND ".join(f"{one.name} = {one.type.draw(chance)}" for one in table.keys)
        if kind == "delete":
            return f"DELETE FROM {table.name} WHERE {where}"
        count = chance.randint(0, min(3, len(table.columns)))
        columns = chance.sample(table.columns, count)
        if kind == "key":
            columns = [*columns, chance.choice(table.keys)]
        sets = [f"{one.name} = {self._value(one, chance)}" for one in columns]
        sets.append(f"rev = {next(self._revisions)}")
        return f"UPDATE {table.name} SET {', '.join(sets)} WHERE {where}"

    def _insert(self, table: Table, chance: random.Random) -> str:
        every = [*table.keys, *table.columns]
        names = ", ".join(one.name for one in every)
        values = ", ".join(self._value(one, chance) for one in every)
        return f"INSERT INTO {table.name} ({names}, rev) VALUES ({values}, {next(self._revisions)})"

    def _value(self, column: Column, chance: random.Random) -> str:
        # Columns of keys are called by words, others `c` and a number.
        is_key = not column.name[1:].isdigit()
        return "NULL" if not is_key and chance.random() < 0.15 else column.type.draw(chance)

    def _large_transaction(self, table: Table, chance: random.Random) -> Iterator[str]:
        key, revision = table.keys[0].name, next(self._revisions)
        column = chance.choice(table.columns)
        value = column.type.draw(chance)
        here = f"{key} > {LARGE}"
        numbers = self._source.numbers.format(n=self._large)
        if chance.random() < 0.5:
            yield f"DELETE FROM {table.name} WHERE {here}"
            yield (
                f"INSERT INTO {table.name} ({key}, rev, {column.name})"
                f" SELECT {LARGE} + g, {revision}, {value} FROM {numbers}"
            )
        yield f"UPDATE {table.name} SET rev = {next(self._revisions)} WHERE {here}"
        if chance.random() < 0.3:
            yield f"DELETE FROM {table.name} WHERE {here}"

    # ---- tables ----

    def _change_tables(self, chance: random.Random) -> None:
        try:
            while not self._stop.wait(chance.uniform(2, 8)):
                with ExitStack() as held:
                    held.enter_context(self.changing)
                    for lock in self._steps:
                        held.enter_context(lock)
                    session = self._source.connect(self._server)
                    self._change_table(session, chance.choice(self.tables), chance)
                    session.close()
        except BaseException as error:
            self.broken = error
            raise

    def _change_table(self, session: Any, table: Table, chance: random.Random) -> None:
        kinds = {"add": 4, "default": 2, "wider": 3, "drop": 2, "truncate": 1, "again": 1}
        (kind,) = chance.choices(list(kinds), list(kinds.values()))
        columns, defaults = list(table.columns), dict(table.defaults)
        statements = list(self._alteration(kind, table, chance))
        if not statements:
            return
        self.counts[f"ddl {kind}"] += 1
        try:
            for one in ["BEGIN", *statements, "COMMIT"]:
                session.run(one)
        except BaseException:
            table.columns, table.defaults = columns, defaults
            raise
        for _ in range(chance.choice((0, 5)) if kind == "again" else 0):
            self.insert_one(table, session)

    def _alteration(self, kind: str, table: Table, chance: random.Random) -> Iterator[str]:
        name = table.name
        if kind in {"add", "default"}:
            column = self._column(chance.choice(self._source.types))
            value = column.type.draw(chance)
            default = ""
            # Debezium reads plain values of a default of MariaDB only (POLYNYA-GTW-049).
            if kind == "default" and "(" not in value:
                table.defaults[column.name] = value
                default = f" DEFAULT {value}"
            table.columns.append(column)
            yield f"ALTER TABLE {name} ADD COLUMN {column.name} {column.type.ddl}{default}"
            yield from self._after([column], table)
        elif kind == "wider":
            for number, column in enumerate(table.columns):
                if column.type.wider and chance.random() < 0.5:
                    wide = next(one for one in self._source.types if one.ddl == column.type.wider)
                    table.columns[number] = Column(column.name, wide)
                    yield self._source.alter.format(table=name, column=column.name, type=wide.ddl)
                    break
            else:
                return
        elif kind == "drop" and len(table.columns) > 3:
            column = table.columns.pop(chance.randrange(len(table.columns)))
            yield f"ALTER TABLE {name} DROP COLUMN {column.name}"
        elif kind == "truncate":
            yield f"TRUNCATE TABLE {name}"
            yield f"INSERT INTO audit.log (name, op) VALUES ('{name}', 'T')"
        elif kind == "again":
            yield f"DROP TABLE {name}"
            yield f"INSERT INTO audit.log (name, op) VALUES ('{name}', 'X')"
            table.columns = [self._column(one) for one in chance.sample(self._source.types, 6)]
            table.defaults = {}
            yield from self._create(table)
            return
        else:
            return
        yield from self._source.audited(name, table.keys, self._audited(table))

    def _create(self, table: Table) -> Iterator[str]:
        every = [*(f"{one.name} {one.type.ddl} NOT NULL" for one in table.keys), "rev bigint"]
        every += [f"{one.name} {one.type.ddl}" for one in table.columns]
        keys = ", ".join(one.name for one in table.keys)
        yield f"CREATE TABLE {table.name} ({', '.join(every)}, PRIMARY KEY ({keys}))"
        yield from self._after(table.columns, table)
        yield from self._source.audited(table.name, table.keys, self._audited(table))

    def _audited(self, table: Table) -> list[Column]:
        return [*table.columns, Column("rev", self._source.revision)]

    def _after(self, columns: list[Column], table: Table) -> Iterator[str]:
        for one in columns:
            if one.type.after:
                yield one.type.after.format(table=table.name, column=one.name)

    def _column(self, kind: Any) -> Column:
        return Column(f"c{next(self._numbers)}", kind)
