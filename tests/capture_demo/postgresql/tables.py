"""The tables of the bank whose database is captured, and the rows that are there at first.

As pgbench's, with what a capture may stumble over: large texts that the log leaves out where they
stay the same, a key of two texts, a table that is truncated. As in pgbench `history` has no key.
"""

from __future__ import annotations

from typing import Any

import pg8000.native

from examples.servers.postgresql import PostgresServer, postgres_server
from tests.capture_demo.bank import Bank, Limits
from tests.capture_demo.postgresql.steps import STEPS

_CREATE = (
    "CREATE TABLE branches (bid int PRIMARY KEY, balance bigint NOT NULL, note text)",
    (
        "CREATE TABLE tellers (tid int PRIMARY KEY, bid int NOT NULL, balance int NOT NULL,"
        " name varchar(20))"
    ),
    (
        "CREATE TABLE accounts (aid bigint PRIMARY KEY, bid int NOT NULL, balance numeric(14,2),"
        " owner text, opened timestamptz, active boolean)"
    ),
    "CREATE TABLE history (tid int, bid int, aid bigint, delta int, at timestamp)",
    "ALTER TABLE history REPLICA IDENTITY FULL",
    (
        "CREATE TABLE documents (id int PRIMARY KEY, version int, title text, body text,"
        " attributes jsonb)"
    ),
    # Stored apart and not compressed: what does not change is not in the log.
    "ALTER TABLE documents ALTER body SET STORAGE EXTERNAL",
    "CREATE TABLE prices (region text, sku text, price numeric(12,4), PRIMARY KEY (region, sku))",
    "CREATE TABLE baskets (id bigint PRIMARY KEY, aid bigint, content text)",
)
#: By `n` rows and a `seed`; the values follow from both.
_FILL = (
    "INSERT INTO branches SELECT g, 0, 'branch ' || g FROM generate_series(1, {n}) g",
    "INSERT INTO tellers SELECT g, 1 + g % 10, 0, 'teller ' || g FROM generate_series(1, {n}) g",
    "INSERT INTO accounts SELECT g, 1 + g % 10,"
    " round((g::bigint * 7919 % 1000003)::numeric / 100, 2),"
    " CASE WHEN g % 17 = 0 THEN NULL ELSE 'Åsa ''" + "' || md5({seed} || g) END,"
    " timestamptz '2020-01-01 00:00:00+00' + g * interval '1.000001 second', g % 3 = 0"
    " FROM generate_series(1, {n}) g",
    (
        "INSERT INTO documents SELECT g, 0, 'document ' || g,"
        " (SELECT string_agg(md5({seed} || g || h), '') FROM generate_series(1, 200) h),"
        " jsonb_build_object('n', g) FROM generate_series(1, {n}) g"
    ),
    (
        "INSERT INTO prices SELECT 'region ' || g % 5, 'sku ' || g, (g % 997) / 8.0"
        " FROM generate_series(1, {n}) g"
    ),
    (
        "INSERT INTO history SELECT 1 + g % 10, 1 + g % 10, g, g % 100, timestamp '2020-01-01'"
        " FROM generate_series(1, {n}) g"
    ),
)
#: Rows of each statement above for each row of `accounts`, within limits.
_SHARES = ((0.0, 10, 10), (0.001, 10, 1000), (1.0, 1, 10**9), (0.001, 20, 500), (0.01, 50, 10_000),
           (0.01, 50, 10_000))  # fmt: skip

#: Changes of the tables, each in a transaction of its own. A column with a default gets it in all
#: rows at once, of which the log has nothing: the application writes them afterwards.
CHANGES = (
    ("ALTER TABLE accounts ADD COLUMN tier int",),
    ("TRUNCATE baskets",),
    ("ALTER TABLE tellers ADD COLUMN grade int DEFAULT 7", "UPDATE tellers SET name = name"),
    ("ALTER TABLE tellers ALTER balance TYPE bigint",),
    ("ALTER TABLE documents DROP COLUMN attributes",),
    ("ALTER TABLE prices ALTER price TYPE numeric(16,4)",),
    ("UPDATE accounts SET tier = 1 WHERE aid < 500",),
    ("TRUNCATE baskets",),
)


def create(server: PostgresServer, accounts: int, seed: str) -> Limits:
    """Make the tables with so many accounts."""
    for statement in _CREATE:
        server.run(statement)
    counts = [min(max(int(accounts * share), least), most) for share, least, most in _SHARES]
    for statement, count in zip(_FILL, counts, strict=True):
        server.run(_filled(statement, count, seed))
    _, _, _, documents, prices, _ = counts
    return Limits(accounts, documents, prices, sum(counts))


def _filled(statement: str, rows: int, seed: str) -> str:
    quoted = "'" + seed.replace("'", "''") + "'"
    return statement.format(n=rows, seed=quoted)


def _connect(server: PostgresServer) -> Any:
    session = server.connect()
    # A change of a table must not wait behind all the others for a long transaction.
    session.run("SET lock_timeout = '3s'")
    return session


def _unseen(server: PostgresServer, statement: str) -> None:
    """The table is out of the publication within one transaction, which nobody else sees."""
    [[publication]] = server.run("SELECT pubname FROM pg_publication")
    session = server.connect()
    for one in (
        "BEGIN", f"ALTER PUBLICATION {publication} DROP TABLE tellers", statement,
        f"ALTER PUBLICATION {publication} ADD TABLE tellers", "COMMIT",
    ):  # fmt: skip
        session.run(one)
    session.close()


BANK = Bank(
    name="PostgreSQL",
    kind="postgresql",
    database="postgres",
    include="public.%",
    tables=7,
    server=postgres_server,
    connect=_connect,
    create=create,
    steps=STEPS,
    changes=CHANGES,
    errors=(pg8000.native.Error, OSError),
    done=("already exists", "does not exist"),
    unseen=_unseen,
)
