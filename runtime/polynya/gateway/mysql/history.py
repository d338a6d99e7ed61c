"""The schemas that a stream begins with, as Debezium's history of schemas holds them. Pure.

Debezium reads rows of the log by the definitions of tables that it knows from statements. They are
written here from the catalog, so that it has to look at nothing itself and takes no lock, and so
that types which it reads wrongly have the names of others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from polynya.gateway.mysql.catalog import Column, Table
from polynya.gateway.mysql.quoting import quoted
from polynya.gateway.mysql.rows import NAME


def history_of(tables: Iterable[Table], offset: Mapping[str, Any]) -> bytes:
    """The content of the history's file: a line for each table, at the place of an offset.

    Views are not in it, since no row of the log is of one.
    """
    return b"".join(
        json.dumps(
            {
                "source": {"server": NAME}, "position": dict(offset), "ts_ms": 0,
                "databaseName": table.database, "ddl": definition(table), "tableChanges": [],
            },
            ensure_ascii=False,
        ).encode() + b"\n"
        for table in tables
        if not table.is_view
    )  # fmt: skip


def definition(table: Table) -> str:
    """The statement that makes a table with the columns and the key of another one."""
    parts = [_column(column) for column in table.columns]
    if table.key:
        parts.append(f"PRIMARY KEY ({', '.join(quoted(name) for name in table.key)})")
    return f"CREATE TABLE {quoted(table.database, table.name)} ({', '.join(parts)})"


def _column(column: Column) -> str:
    facts = column.facts
    kind = (column.coding.history if column.coding else "longblob") or facts.plain
    charset = f" CHARACTER SET {facts.charset}" if facts.charset else ""
    return f"{quoted(facts.name)} {kind}{charset} {'NULL' if facts.nullable else 'NOT NULL'}"
