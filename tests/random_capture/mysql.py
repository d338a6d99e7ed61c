"""MySQL under the random workload: what differs from MariaDB."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from examples.servers.mariadb import Server
from examples.servers.mysql import MysqlServer
from tests.random_capture import mariadb, types
from tests.random_capture.source import Audit, Column
from tests.random_capture.types import Type


def _document(text: str) -> Any:
    """A document by its values: Debezium writes doubles with other digits than the server."""
    return json.loads(text, parse_float=lambda it: Decimal(float(it)), parse_int=Decimal)


def _of_mysql(one: Type) -> Type:
    """A type of MariaDB as MySQL has it."""
    if one.ddl == "json":
        draws = [lambda c: f"'{{\"b\": 1.50,  \"a\": [null, {types.doubles(c)!r}]}}'",
                 lambda c: f"JSON_QUOTE({mariadb.text_of(types.words(c))})",
                 lambda c: f"JSON_ARRAY({c.randint(-(2**63), 2**63 - 1)}, TRUE)"]  # fmt: skip
        return replace(one, draw=lambda c: c.choice(draws)(c), value=_json, shown=_document)
    # Only later versions know CAST AS DOUBLE.
    return replace(one, text=one.text.replace("CAST({} AS DOUBLE)", "({} * 1e0)"))


def _json(text: str) -> Any:
    return _document(bytes.fromhex(text).decode())


#: Debezium cannot read YEAR beside eight other numbers from this version of MySQL.
_ABSENT = frozenset({"uuid", "year"})
TYPES = tuple(_of_mysql(one) for one in mariadb.TYPES if one.ddl not in _ABSENT)
_AUDIT = Audit(TYPES, "JSON_OBJECT", "JSON_ARRAY")


@contextmanager
def _server() -> Iterator[Server]:
    settings = {"collation_server": "utf8mb4_0900_ai_ci", "log_bin_trust_function_creators": "1"}
    with tempfile.TemporaryDirectory() as folder:
        server = MysqlServer(Path(folder), settings)
        try:
            server.start()
            yield server
        finally:
            server.close()


def _audited(name: str, keys: Sequence[Column], columns: Sequence[Column]) -> list[str]:
    """The triggers; MySQL cannot replace one."""
    created = mariadb.triggers(_AUDIT, name, keys, columns)
    return [
        statement
        for event, body in created.items()
        for statement in (
            f"DROP TRIGGER IF EXISTS {name}_{event}",
            f"CREATE TRIGGER {name}_{event} AFTER {event} ON {name} FOR EACH ROW {body}",
        )
    ]


MYSQL = replace(
    mariadb.MARIADB,
    name="MySQL",
    kind="mysql",
    tls="require",
    types=TYPES,
    server=_server,
    audited=_audited,
)
