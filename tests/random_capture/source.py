"""What differs between the databases under the random workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tests.random_capture.types import Type


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    type: Type


@dataclass(frozen=True)
class Source:
    """One kind of database.

    Attributes:
        name: for people.
        kind: type of the connection.
        database: name of the database.
        include: the tables that are captured.
        schema: what stands before the dot in their names.
        types: of columns.
        keys: of tables: each the columns of one key.
        setup: what makes the database ready, and `audit.log (seq, name, op, image)`.
        server: starts one.
        connect: a session, with `run(statement)` and `close()`.
        audited: statements by which each change of a row of a table is written to `audit.log`, in
            the transaction that makes it: name, key, other columns.
        alter: gives a column another type.
        numbers: a table `g` with the numbers from 1 to `{n}`.
        tls: mode of the connection.
        errors: what a session meets that has lost its server, a lock or a race.
    """

    name: str
    kind: str
    database: str
    include: str
    schema: str
    types: tuple[Type, ...]
    keys: tuple[tuple[Column, ...], ...]
    setup: tuple[str, ...]
    server: Callable[[], AbstractContextManager[Any]]
    connect: Callable[[Any], Any]
    audited: Callable[[str, Sequence[Column], Sequence[Column]], list[str]]
    alter: str
    numbers: str
    errors: tuple[type[BaseException], ...]
    tls: str = "disable"

    @property
    def revision(self) -> Type:
        """The type of `rev`, another number in each version of a record."""
        return next(one for one in self.types if one.ddl == "bigint")


@dataclass(frozen=True)
class Audit:
    """Parts of the triggers that write down what happens, in the SQL of one database.

    Attributes:
        types: those that a number in the log means.
        object: function of a JSON object.
        array: function of a JSON array.
    """

    types: Sequence[Type]
    object: str
    array: str

    def row(self, which: str, keys: Sequence[Column], columns: Sequence[Column] = ()) -> str:
        """The exact texts of a row `OLD` or `NEW` with the numbers of their types; -1 is a key.

        An array of objects, because a function of PostgreSQL takes at most 100 arguments.
        """
        pairs = [
            f"'{one.name}', {self.array}({number}, {one.type.text.format(f'{which}.{one.name}')})"
            for these, is_key in ((keys, True), (columns, False))
            for one in these
            for number in (-1 if is_key else self.types.index(one.type),)
        ]
        parts = (", ".join(pairs[at : at + 50]) for at in range(0, len(pairs), 50))
        return f"{self.array}({', '.join(f'{self.object}({part})' for part in parts)})"

    def differs(self, keys: Sequence[Column]) -> str:
        """Whether a key is another one: when its bytes are, also where a collation sees none."""
        return " OR ".join(
            f"{one.type.text.format(f'OLD.{one.name}')}"
            f" <> {one.type.text.format(f'NEW.{one.name}')}"
            for one in keys
        )
