"""Quarantined records that are read again: where their rows are, and how the books change."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from polynya.formats.batch import UNPARSED, WHOLE_FILE, Rejected
from polynya.lake.fold.sql import within
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.iceberg.staging import PLACES
from polynya.lake.spark.api import SparkSession
from polynya.lake.table.books import discounted
from polynya.lake.table.copy_state import CopyState
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition


@dataclass(frozen=True, slots=True)
class Replayed:
    """Rows of the quarantine that leave it.

    `places` has the columns `staging.PLACES`, one row a record. `files` are landed files that were
    quarantined whole: the position forgets them, so that the next run reads them again. `unparsed`
    of the records could not be parsed.
    """

    places: pa.Table
    files: tuple[str, ...] = ()
    unparsed: int = 0

    def discounted(self, state: CopyState) -> CopyState:
        """Take the records out of the counters; the batch that reads them counts them again."""
        position = state.position
        files = {path: done for path, done in position.files.items() if path not in self.files}
        state = replace(state, position=replace(position, files=files))
        return discounted(state, self.places.num_rows, unparsed=self.unparsed)


def quarantined(
    spark: SparkSession,
    table: IcebergTable,
    snapshot: int,
    identifiers: Sequence[str] | None,
    *,
    files: Collection[str] | None = None,
) -> tuple[list[Rejected], Replayed]:
    """Read quarantined records: all, or those with the given identifiers and out of these files."""
    rows = spark.sql(
        f"SELECT {h.QUARANTINE}.*, {h.PARTITION} AS part, _file AS file_path, _pos AS pos "
        f"FROM {table.at(snapshot)} WHERE {within(Partition.QUARANTINE)}"
    )
    if identifiers is not None:
        rows = rows.where(rows["id"].isin(list(identifiers)))
    if files is not None:
        rows = rows.where(rows["file"].isin(list(files)))
    found = rows.orderBy("file", "offset").toArrow()
    records = [
        Rejected(row["file"], row["offset"], row["rule"], row["error"], row["raw"] or b"")
        for row in found.select(["file", "offset", "rule", "error", "raw"]).to_pylist()
    ]
    whole = tuple(record.file for record in records if record.offset == WHOLE_FILE)
    unparsed = sum(one.rule in UNPARSED for one in records)
    return records, Replayed(found.select(PLACES.names), whole, unparsed)
