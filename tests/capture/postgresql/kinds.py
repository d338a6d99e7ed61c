"""All types of PostgreSQL as one table, and what Debezium makes of each value.

The expected values were recorded from Debezium 3.5, with the settings of
`capture/postgresql/database.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDED = json.loads((Path(__file__).parent / "debezium_types.json").read_text())
TYPES = {one["type"]: one for one in RECORDED["types"]}
COLUMNS = {name: f"c{number}" for number, name in enumerate(TYPES)}


def create() -> list[str]:
    """What makes a table with a column for each type."""
    columns = ", ".join(f"{COLUMNS[name]} {name}" for name in TYPES)
    return [
        *RECORDED["setup"],
        f"CREATE TABLE kinds (id int PRIMARY KEY, {columns})",
        # Else a list of enums with a NULL among them is an error, as the page says.
        "ALTER TABLE kinds REPLICA IDENTITY FULL",
    ]


def insert(first: int = 0) -> str:
    """What fills it: the values of each type from a row on, and NULL in all that remains."""
    rows = []
    for number in range(1 + max(len(one["values"]) for one in TYPES.values())):
        given = [one["values"][number : number + 1] for one in TYPES.values()]
        values = ", ".join(value[0][0] if value else "NULL" for value in given)
        rows.append(f"({first + number}, {values})")
    return f"INSERT INTO kinds VALUES {', '.join(rows)}"


def expected(name: str) -> list[Any]:
    """The values of a type as they leave the database, those that are not NULL."""
    return [value for _, value in TYPES[name]["values"] if value is not None]
