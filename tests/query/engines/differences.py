"""What engines show differently from Spark, and why: the table of `docs/other-engines.md`.

Each difference changes what Spark shows into what the engine has to show instead. Whatever else
differs is a fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tests.query.engines.engines import View

#: A dataset whose key is a time.
KEYED_BY_TIME: Final = "kinds.times"


@dataclass(frozen=True)
class Difference:
    """One line of the table: who shows what as what, and why. `adapt` does it to Spark's rows."""

    engines: tuple[str, ...]
    what: str
    shown: str
    why: str
    adapt: Callable[[View, pa.Table], pa.Table]

    @property
    def line(self) -> str:
        """The line of the table on the page."""
        return f"| {', '.join(self.engines)} | {self.what} | {self.shown} | {self.why} |"


def _lower_case(_: View, table: pa.Table) -> pa.Table:
    return table.rename_columns([name.lower() for name in table.column_names])


def _without_zone(_: View, table: pa.Table) -> pa.Table:
    instant, local = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
    return table.cast(
        pa.schema([(one.name, local if one.type == instant else one.type) for one in table.schema])
    )


def _without_hash(view: View, table: pa.Table) -> pa.Table:
    if view.dataset != KEYED_BY_TIME or view.kind != "history":
        return table
    at = table.column_names.index("hdr__key_hash")
    pending = table.filter(pc.equal(table["hdr__store"], "CHANGES"))["at"]
    is_pending = pc.is_in(table["at"], pending.combine_chunks())
    hashes = pc.if_else(is_pending, pa.scalar(None, pa.binary()), table["hdr__key_hash"])
    return table.set_column(at, "hdr__key_hash", hashes)


def _whole_numbers(_: View, table: pa.Table) -> pa.Table:
    return table.cast(
        pa.schema(
            [
                (one.name, pa.decimal128(38, 0) if pa.types.is_integer(one.type) else one.type)
                for one in table.schema
            ]
        )
    )


def _nested_as_json(_: View, table: pa.Table) -> pa.Table:
    columns = [
        pa.array([_json_of(value, column.type) for value in column.to_pylist()], pa.string())
        if pa.types.is_nested(column.type)
        else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, table.column_names)


def _json_of(value: Any, kind: pa.DataType) -> str | None:
    return None if value is None else json_text(_plain_json(value, kind))


def _plain_json(value: Any, kind: pa.DataType) -> Any:
    """A value as JSON has it: maps are objects."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {str(key): _plain_json(one, kind.item_type) for key, one in value}
    if pa.types.is_struct(kind):
        return {one.name: _plain_json(value[one.name], one.type) for one in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain_json(one, kind.value_type) for one in value]
    return value


def json_text(value: Any) -> str:
    """JSON in which equal values have one text."""
    return json.dumps(value, sort_keys=True, default=str)


def _upper_case(_: View, table: pa.Table) -> pa.Table:
    return table.rename_columns([name.upper() for name in table.column_names])


DIFFERENCES = (
    Difference(
        ("Trino with printed views",),
        "names of columns",
        "in lower case",
        "Trino and Glue know no other; Iceberg views keep the names beside their text",
        _lower_case,
    ),
    Difference(
        ("DuckDB",),
        "`timestamp` with a zone, the header columns among them",
        "a time of UTC without a zone; inside lists, maps and structs the zone stays",
        "DuckDB reads Athena's text, whose views cannot show a zone",
        _without_zone,
    ),
    Difference(
        ("Trino", "Trino with printed views", "DuckDB", "Snowflake's stand-in"),
        "`hdr__key_hash` in History of records with pending changes, where the key has a time, a "
        "number with a fraction other than `decimal`, or a nested value",
        "NULL until the apply",
        "the hash is of Spark's text of the key, and other engines write such values differently",
        _without_hash,
    ),
    Difference(
        ("Snowflake's stand-in",),
        "`int` and `bigint`",
        "`NUMBER(38,0)`",
        "a limit of the stand-in, which has one type of whole numbers; Snowflake's have 10 and 19 "
        "digits",
        _whole_numbers,
    ),
    Difference(
        ("Snowflake's stand-in",),
        "lists, maps and structs",
        "read as JSON text",
        "a limit of the stand-in, which describes no nested types",
        _nested_as_json,
    ),
    Difference(
        ("Snowflake's stand-in",),
        "names of columns",
        "in upper case",
        "the views name them so, because Snowflake reads names without quotes so",
        _upper_case,
    ),
)


def adapted(engine: str, view: View, table: pa.Table) -> pa.Table:
    """What Spark shows, as an engine has to show it."""
    for one in DIFFERENCES:
        if engine in one.engines:
            table = one.adapt(view, table)
    return table
