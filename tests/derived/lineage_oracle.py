"""What the lineage of a statement says, against the statement itself in DuckDB.

New values in all input columns that are not in the lineage of a column of the result must not
change that column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

from polynya.derived.affected import statement_sql
from polynya.derived.lineage import InputColumn, QueryLineage, lineage_of
from polynya.derived.statement import parse
from tests.derived.shop import INPUTS, Data, Row, Tables, row, value


class MissingOriginError(AssertionError):
    """A column of the result changed with a column that is not in its lineage."""


def check_lineage(sql: str, random: Random, tables: Tables, *, rounds: int = 1) -> QueryLineage:
    """Compare the lineage of a statement with what new values do. Raises MissingOriginError."""
    statement = parse(sql, INPUTS, "lineage.sql")
    relations = {name: f"new_{name.partition('.')[2]}" for name in INPUTS}
    spoken = statement_sql(statement, relations, dialect="duckdb")
    lineage = lineage_of(statement)
    for _ in range(rounds):
        data = {
            name: {(at,): row(one, random) for at in range(random.randrange(3, 7))}
            for name, one in INPUTS.items()
        }
        tables.load("new", data)
        before = tables.connection.execute(spoken).fetchall()
        for origins in _different(lineage):
            kept = {*origins, *lineage.rows.inputs}
            places = [
                at for at, column in enumerate(lineage.columns.values()) if {*column.inputs} <= kept
            ]
            tables.load("new", _changed(data, kept, random))
            after = tables.connection.execute(spoken).fetchall()
            if _bag(before, places) != _bag(after, places):
                names = [name for at, name in enumerate(lineage.columns) if at in places]
                raise MissingOriginError(f"{names} of {sql} depend on more than {sorted(kept)}")
    return lineage


def _different(lineage: QueryLineage) -> list[Mapping[InputColumn, object]]:
    return list({frozenset(one.inputs): one.inputs for one in lineage.columns.values()}.values())


def _bag(rows: list[Row], places: list[int]) -> Counter[Row]:
    return Counter(tuple(values[at] for at in places) for values in rows)


def _changed(data: Data, kept: set[InputColumn], random: Random) -> Data:
    """The data with new values in all columns but those that are kept."""
    return {
        name: {
            key: tuple(
                values[at] if (name, column) in kept else value(kind, random)
                for at, (column, kind) in enumerate(INPUTS[name].columns.items())
            )
            for key, values in rows.items()
        }
        for name, rows in data.items()
    }
