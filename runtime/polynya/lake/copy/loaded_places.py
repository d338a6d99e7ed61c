"""Records of a load whose rows came from several places of a stream: which pairs of places.

A place is a partition, a shard or a file. Each row tells its own where a stream is read at its
source (`at_places`), and within one place rows are in order.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import DatasetBatch
from polynya.lake.fold.sql import within
from polynya.lake.table.dataset import DatasetTable
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.stream_headers import PLACE_HEADERS, StreamSource

_POSITION = "__position"


def at_places(batch: DatasetBatch, source: StreamSource) -> DatasetBatch:
    """The batch of a stream whose rows say which partition, shard or file they came from."""
    rows = batch.rows
    if not rows.num_rows:
        return batch
    names = PLACE_HEADERS[source][:-1]
    parts = [rows.column(name).cast(pa.string()) for name in names]
    places = pc.binary_join_element_wise(*parts, "/")
    at = rows.schema.get_field_index(_POSITION)
    return replace(batch, rows=rows.set_column(at, rows.schema.field(at), places))


def pairs_of_places(target: DatasetTable) -> list[tuple[str, str]]:
    """The pairs of places of which one record has rows, and the newest may be in either.

    Where settings name an order, that are the rows that have the last place in it.
    """
    assert target.state.snapshot is not None, "a reload has begun"
    shape = target.stored_shape(keys=target.known_keys())
    table, keys = target.table.at(target.state.snapshot), shape.key_list()
    last = f"max({h.CHANGE_IDENTIFIER}) OVER (PARTITION BY {keys})"
    ordered = target.dataset.events.sequence_by
    newest = f"{h.CHANGE_IDENTIFIER} = __latest" if ordered else "true"
    rows = (
        f"SELECT {keys}, {h.SOURCE_POSITION}, {h.CHANGE_IDENTIFIER}, {last} AS __latest "
        f"FROM {table} WHERE {within(Partition.RELOAD)} AND {h.OPERATION} IN ('L', 'D')"
    )
    of_records = (
        f"SELECT sort_array(collect_set({h.SOURCE_POSITION})) AS __places FROM ({rows}) "
        f"WHERE {newest} GROUP BY {keys}"
    )
    pairs = (
        "explode(flatten(transform(__places, (a, i) -> "
        "transform(slice(__places, i + 2, size(__places)), "
        "b -> named_struct('a', a, 'b', b)))))"
    )
    found = target.spark.sql(
        f"SELECT DISTINCT __pair.a, __pair.b FROM (SELECT {pairs} AS __pair FROM ({of_records}) "
        "WHERE size(__places) > 1)"
    )
    return sorted((row["a"], row["b"]) for row in found.collect())
