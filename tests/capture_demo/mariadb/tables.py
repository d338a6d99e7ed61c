"""The tables of the bank in MariaDB, the rows that are there at first, and what changes the tables.

The same as in PostgreSQL, as far as MariaDB has it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql

from examples.servers.mariadb import Server, mariadb_server
from tests.capture_demo.bank import Bank, Limits
from tests.capture_demo.mariadb.steps import STEPS

_DATABASE = "bank"
_CREATE = (
    "CREATE TABLE branches (bid int PRIMARY KEY, balance bigint NOT NULL, note text)",
    (
        "CREATE TABLE tellers (tid int PRIMARY KEY, bid int NOT NULL, balance int NOT NULL,"
        " name varchar(20))"
    ),
    (
        "CREATE TABLE accounts (aid bigint PRIMARY KEY, bid int NOT NULL, balance decimal(14,2),"
        " owner text, opened timestamp(6) NULL, active boolean)"
    ),
    "CREATE TABLE history (tid int, bid int, aid bigint, delta int, at datetime(6))",
    (
        "CREATE TABLE documents (id int PRIMARY KEY, version int, title text, body longtext,"
        " attributes json)"
    ),
    (
        "CREATE TABLE prices (region varchar(20), sku varchar(20), price decimal(12,4),"
        " PRIMARY KEY (region, sku)) COLLATE utf8mb4_bin"
    ),
    "CREATE TABLE baskets (id bigint PRIMARY KEY, aid bigint, content text)",
)
_NUMBERS = "WITH RECURSIVE g (g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM g WHERE g < {n})"
#: By `n` rows and a `seed`; the values follow from both.
_FILL = (
    f"INSERT INTO branches {_NUMBERS} SELECT g, 0, CONCAT('branch ', g) FROM g",
    f"INSERT INTO tellers {_NUMBERS} SELECT g, 1 + g % 10, 0, CONCAT('teller ', g) FROM g",
    (
        f"INSERT INTO accounts {_NUMBERS} SELECT g, 1 + g % 10, (g * 7919 % 1000003) / 100,"
        " IF(g % 17 = 0, NULL, CONCAT('Åsa ''', MD5(CONCAT({seed}, g)))),"
        " TIMESTAMPADD(MICROSECOND, g * 1000001, '2020-01-01 00:00:00'), g % 3 = 0 FROM g"
    ),
    (
        f"INSERT INTO documents {_NUMBERS} SELECT g, 0, CONCAT('document ', g),"
        " REPEAT(MD5(CONCAT({seed}, g)), 200), CONCAT('{{\"n\": ', g, '}}') FROM g"
    ),
    (
        f"INSERT INTO prices {_NUMBERS} SELECT CONCAT('region ', g % 5), CONCAT('sku ', g),"
        " (g % 997) / 8 FROM g"
    ),
    (
        f"INSERT INTO history (tid, bid, aid, delta, at) {_NUMBERS} SELECT 1 + g % 10,"
        " 1 + g % 10, g, g % 100, '2020-01-01 00:00:00' FROM g"
    ),
)
_COUNTS = (10, 10, 0, 20, 50, 50)
_CHANGES = (
    ("ALTER TABLE accounts ADD COLUMN tier int",),
    ("TRUNCATE baskets",),
    ("ALTER TABLE tellers ADD COLUMN grade int DEFAULT 7", "UPDATE tellers SET grade = 8"),
    ("ALTER TABLE tellers MODIFY balance bigint NOT NULL",),
    ("ALTER TABLE documents DROP COLUMN attributes",),
    ("ALTER TABLE prices MODIFY price decimal(16,4)",),
    ("UPDATE accounts SET tier = 1 WHERE aid < 500",),
    ("TRUNCATE baskets",),
)
_SESSION = (
    "SET sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES', time_zone = '+00:00',"
    " lock_wait_timeout = 3, innodb_lock_wait_timeout = 3, max_recursive_iterations = 100000000"
)


class Session:
    """A session that runs statements as they are."""

    def __init__(self, server: Server) -> None:
        self._link = server.connect(_DATABASE)
        self.run(_SESSION)

    def run(self, statement: str) -> None:
        """Run a statement."""
        with self._link.cursor() as cursor:
            cursor.execute(statement)

    def close(self) -> None:
        """End it."""
        self._link.close()


def create(server: Server, accounts: int, seed: str) -> Limits:
    """Make the tables with so many accounts."""
    server.execute(f"CREATE DATABASE {_DATABASE}")
    session = Session(server)
    for statement in _CREATE:
        session.run(statement)
    for statement, count in zip(_FILL, _COUNTS, strict=True):
        quoted = "'" + seed.replace("'", "''") + "'"
        session.run(statement.format(n=count or accounts, seed=quoted))
    session.close()
    _, _, _, documents, prices, _ = _COUNTS
    return Limits(accounts, documents, prices, sum(_COUNTS) + accounts)


@contextmanager
def _server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder, mariadb_server(Path(folder)) as server:
        yield server


def _connect(server: Any) -> Session:
    return Session(server)


def _unseen(server: Any, statement: str) -> None:
    session = Session(server)
    session.run("SET sql_log_bin = 0")
    session.run(statement)
    session.close()


BANK = Bank(
    name="MariaDB",
    kind="mariadb",
    database=_DATABASE,
    include=f"{_DATABASE}.%",
    tables=7,
    server=_server,
    connect=_connect,
    create=create,
    steps=STEPS,
    changes=_CHANGES,
    errors=(pymysql.err.Error, OSError),
    done=("Duplicate column", "check that it exists"),
    unseen=_unseen,
)
