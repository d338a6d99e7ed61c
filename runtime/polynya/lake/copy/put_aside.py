"""Rows of a query that fail an expectation: they stand in quarantine in place of the table.

The quarantine of a derived table holds the rows that fail now, each once, and not those that failed
before: a step that computes some rows replaces the entries of these rows. So a row that passes
again leaves the quarantine in the commit that inserts it, and table and quarantine together are
what the query returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from polynya.formats.batch import OF_QUERY, QUERY_FILE
from polynya.lake.apply.run import ApplyRun
from polynya.lake.copy.affected import AffectedKeys
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import table_row, within
from polynya.lake.iceberg.writing import PLACES
from polynya.lake.spark.api import DataFrame
from polynya.lake.table.books import discounted
from polynya.lake.table.state import CopyState
from polynya.lake.table.suspension import Replayed
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import literal, quote

#: Columns of rows that are put aside: the first expectation that a row fails, and all of them.
RULE: Final = "__rule"
ERROR: Final = "__error"
_RAW: Final = "__raw"
_SAME: Final = " AND ".join(f"n.{name} = o.{name}" for name in (RULE, ERROR, _RAW))


@dataclass(frozen=True, slots=True)
class DividedRows:
    """Rows that pass, and rows that fail with the columns `RULE` and `ERROR`, None without one.

    `verdicts` say by what rows fail each expectation that puts rows aside; None: they pass.
    """

    passing: DataFrame
    aside: DataFrame | None
    verdicts: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class QuarantineChange:
    """What a step does to the quarantine of its table.

    `entered` are new entries, in the shape of the internal table, and `left` the places of those
    that go. `failing` rows were put aside by the step, `new` of them make an entry.
    """

    entered: DataFrame
    left: Replayed
    failing: int
    new: int

    def __bool__(self) -> bool:
        return bool(self.new or self.left.places.num_rows)

    def booked(self, state: CopyState) -> CopyState:
        """The state with the entries counted: each is a record that was read."""
        state = discounted(state, self.left.places.num_rows, unparsed=0)
        totals = Counter(state.books.totals)
        totals.update(rows_in=self.new, rows_quarantined=self.new)
        return replace(state, books=replace(state.books, totals=dict(totals)))


def quarantine_change(
    run: ApplyRun, shape: Shape, aside: DataFrame | None, affected: AffectedKeys | None
) -> QuarantineChange | None:
    """What changes in the quarantine; None where it is empty and stays so.

    `shape` has the columns of `aside`. `affected` are the keys that the step has computed;
    None: it has computed all.
    """
    held = run.target.state.copy.books.totals.get("rows_quarantined", 0)
    if aside is None and not held:
        return None
    columns = [quote(name) for name in shape.data]
    if aside is None:
        nothing = run.sql(f"SELECT * FROM {run.table} WHERE false")
        aside = nothing.selectExpr(*columns, f"'' AS {RULE}", f"'' AS {ERROR}")
    raw = f"CAST(to_json(struct({', '.join(columns)})) AS BINARY) AS {_RAW}"
    entries = aside.selectExpr(*columns, RULE, ERROR, raw).dropDuplicates([RULE, ERROR, _RAW])
    entries, join = run.settle(entries), None if affected is None else affected.join("c")
    now, before = run.view(entries), run.view(run.settle(run.sql(_stored(run.table, join))))
    new = run.settle(run.sql(f"SELECT * FROM {now} n LEFT ANTI JOIN {before} o ON {_SAME}"))
    left = run.sql(f"SELECT * FROM {before} o LEFT ANTI JOIN {now} n ON {_SAME}").toArrow()
    return QuarantineChange(
        new.selectExpr(*_entry_columns(shape)),
        Replayed(left.select(PLACES.names)),
        failing=entries.count(),
        new=new.count(),
    )


def _stored(table: str, join: str | None) -> str:
    """Query of the entries that a step replaces, with their places."""
    entry = (
        f"{h.QUARANTINE}.rule AS {RULE}, {h.QUARANTINE}.error AS {ERROR}, "
        f"{h.QUARANTINE}.raw AS {_RAW}"
    )
    places = f"{h.PARTITION} AS part, _file AS file_path, _pos AS pos"
    rows = f"SELECT *, {entry}, {places} FROM {table} WHERE {within(Partition.QUARANTINE)}"
    names = ", ".join(f"c.{name}" for name in (RULE, ERROR, _RAW, *PLACES.names))
    return f"SELECT {names} FROM ({rows}) c {join or ''}"


def _entry_columns(shape: Shape) -> list[str]:
    """An entry as a row of the internal table; its data columns find it by affected keys."""
    fields = (
        f"'id', substr(sha1({_RAW}), 1, 12), "
        f"'file', {literal(QUERY_FILE)}, 'offset', CAST({OF_QUERY} AS BIGINT), "
        f"'rule', {RULE}, 'error', {ERROR}, 'raw', {_RAW}"
    )
    headers = {
        h.PARTITION: literal(str(Partition.QUARANTINE)),
        h.QUARANTINE: f"CAST(named_struct({fields}) AS {h.QUARANTINE_TYPE})",
    }
    columns = table_row(shape, headers)
    return [f"{expression} AS {quote(name)}" for name, expression in columns.items()]
