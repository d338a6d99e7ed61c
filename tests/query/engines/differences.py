"""What engines show differently from Spark, and why: the table of `docs/other-engines.md`.

Each difference changes what Spark shows into what the engine has to show instead. Whatever else
differs is a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

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
        ("Trino", "Trino with printed views", "DuckDB"),
        "`hdr__key_hash` in History of records with pending changes, where the key has a time, a "
        "number with a fraction other than `decimal`, or a nested value",
        "NULL until the apply",
        "the hash is of Spark's text of the key, and other engines write such values differently",
        _without_hash,
    ),
)


def adapted(engine: str, view: View, table: pa.Table) -> pa.Table:
    """What Spark shows, as an engine has to show it."""
    for one in DIFFERENCES:
        if engine in one.engines:
            table = one.adapt(view, table)
    return table
