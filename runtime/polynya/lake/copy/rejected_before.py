"""Records that a reload of a stream rejects, and that were rejected when they were first copied.

The table never held them, so a load that lacks them lacks nothing of the table. Only a stream tells
that: its messages have their place for good, while a file of another load may have the same name.
"""

from __future__ import annotations

from dataclasses import dataclass

from polynya.formats.batch import UNPARSED
from polynya.lake.fold.sql import within
from polynya.lake.spark.api import Column, DataFrame, functions
from polynya.lake.table.dataset import DatasetTable
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote
from polynya.model.contract.stream_headers import LANDED_AT
from polynya.model.formats.registry import rules_of

#: Operation in the quarantine of a record that a reload rejected, and that no copy did: as long as
#: it is there the table may hold what an earlier copy made of the message.
BY_RELOAD = "L"


@dataclass(frozen=True, slots=True)
class Known:
    """Rejected records that are in quarantine already, and how many could not be parsed."""

    records: int = 0
    unparsed: int = 0


def without_rejected_before(target: DatasetTable, frame: DataFrame) -> tuple[DataFrame, Known]:
    """Rows of a load without the rejected records that stay in quarantine as they are.

    Returns the rows, and those records: they have the same place and the same bytes.
    """
    if not rules_of(target.dataset.landing.format).in_order:
        return frame, Known()
    is_bad = within(Partition.QUARANTINE)
    bad = frame.where(is_bad).selectExpr(
        *(f"{h.QUARANTINE}.{name} AS {name}" for name in ("id", "raw", "rule"))
    )
    if target.state.snapshot is None or bad.isEmpty():
        return frame, Known()
    kept = target.spark.sql(
        f"SELECT DISTINCT {h.QUARANTINE}.id AS id, {h.QUARANTINE}.raw AS raw "
        f"FROM {target.table.at(target.state.snapshot)} WHERE {is_bad} AND {h.OPERATION} IS NULL"
    )
    reloading = target.state.copy.reloading
    if reloading is not None and reloading.until is not None:
        # Its place in the landed batches is unknown. That in the source is among the bytes.
        same = _message(bad["raw"]) == _message(kept["raw"])
    else:
        same = (bad["id"] == kept["id"]) & bad["raw"].eqNullSafe(kept["raw"])
    known = bad.join(kept, same).select(bad["id"], bad["rule"]).localCheckpoint()
    rest = frame.join(known, frame[h.QUARANTINE]["id"] == known["id"], "left_anti")
    marked = f"IF({is_bad}, '{BY_RELOAD}', {h.OPERATION}) AS {h.OPERATION}"
    columns = [marked if name == h.OPERATION else quote(name) for name in frame.columns]
    is_unparsed = functions.count_if(known["rule"].isin(*UNPARSED))
    (counted,) = known.agg(functions.count("*"), is_unparsed).collect()
    return rest.selectExpr(*columns), Known(*counted)


def _message(raw: Column) -> Column:
    """The bytes of a message of a stream as text, without what landing it said of it."""
    text = functions.decode(raw, "ISO-8859-1")
    head = functions.substring_index(text, "\n", 1)
    rest = text.substr(functions.length(head) + 1, functions.length(text))
    for said in (f',"{LANDED_AT}":"[^"]*"', ',"place":"[^"]*"'):
        head = functions.regexp_replace(head, said, "")
    return functions.concat(head, rest)
