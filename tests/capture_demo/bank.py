"""What differs between the databases that the demo is told of."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

#: Texts that quoting, encoding or JSON may spoil.
_TEXTS = ("plain", "", "Grüße 'und' \"mehr\"", "a\\b\\n", "🦊 ßž", "line\nbreak\ttab", "null", "{}")


@dataclass(frozen=True, slots=True)
class Limits:
    """How many rows of each kind there were at first, and of all tables."""

    accounts: int
    documents: int
    prices: int
    all: int


#: What a session does in one step: its statements, transactions included.
Step: TypeAlias = Callable[[random.Random, Limits], Iterator[str]]


class Server(Protocol):
    """A server that is killed and started again with the same data, at the same port."""

    user: str
    password: str
    port: int

    def start(self) -> None:
        """Start it, and wait until it answers."""
        ...

    def kill(self) -> None:
        """End it at once, with all its sessions."""
        ...


@dataclass(frozen=True)
class Bank:
    """A bank in one kind of database.

    Attributes:
        name: for people.
        kind: type of the connection.
        database: name of its database.
        include: the tables that are captured.
        tables: how many these are.
        server: starts one with an empty database.
        connect: a session of a server, with `run(statement)` and `close()`.
        create: makes the tables with so many accounts, by a seed; what was made.
        steps: what sessions do, with how often each is chosen.
        changes: of the tables, each in a transaction of its own where there are such.
        errors: what a session meets that has lost its server, a lock or its transaction.
        done: words of an error that says that a change was made already.
        unseen: runs a statement that changes `tellers` and that no capture gets to see.
    """

    name: str
    kind: str
    database: str
    include: str
    tables: int
    server: Callable[[], AbstractContextManager[Any]]
    connect: Callable[[Any], Any]
    create: Callable[[Any, int, str], Limits]
    steps: Mapping[Step, int]
    changes: tuple[tuple[str, ...], ...]
    errors: tuple[type[BaseException], ...]
    done: tuple[str, ...]
    unseen: Callable[[Any, str], None]


def steps_of(bank: Bank, seed: str, limits: Limits) -> Iterator[list[str]]:
    """The steps of a session, without end."""
    chance = random.Random(seed)
    kinds, weights = list(bank.steps), list(bank.steps.values())
    while True:
        (kind,) = chance.choices(kinds, weights)
        yield list(kind(chance, limits))


def text(chance: random.Random) -> str:
    """A text in SQL, NULL now and then."""
    chosen = chance.choice(_TEXTS)
    return "NULL" if chance.random() < 0.1 else "'" + chosen.replace("'", "''") + "'"
