"""Avro files by their blocks. What the library decodes goes into Arrow, many records at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, Final

import pyarrow as pa

from polynya.formats.columnar.columns import typed_columns
from polynya.formats.loads import Split
from polynya.formats.native.columnar.chunks import Chunk
from polynya.formats.native.loads.kinds.kind import Kind, Opened, Piece, Portion, Wanted
from polynya.formats.native.loads.kinds.part import part_of
from polynya.formats.records.avro import blocks_of, header_of, opened_avro, records_of_values
from polynya.formats.values.arrow_types import arrow_type
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.datatypes import Array, DataType, MapType, Struct, Void

_ROWS = 16_384
_NOT_PLAIN = (Array, MapType, Struct, Void)


def _pieces(file: BinaryIO, dataset: ResolvedDataset, size: int, begin: int) -> Opened:
    del dataset, size
    types, _ = opened_avro(file)
    header = header_of(file)
    blocks = blocks_of(file, header, max(begin, len(header)))
    return Opened((Piece(*block) for block in blocks), types)


def _portions(file: BinaryIO, split: Split, wanted: Wanted) -> Iterator[Portion]:
    opened_avro(file)
    header = header_of(file)
    # One that is read whole begins where its header does.
    begin = max(split.begin, len(header))
    types, values = opened_avro(part_of(file, header, begin, split.end))
    while portion := list(islice(values, _ROWS)):
        yield Portion(
            len(portion),
            partial(records_of_values, iter(portion)),
            partial(_chunk, portion, types, split, wanted),
        )


def _chunk(
    values: Sequence[Mapping[str, Any]],
    types: Mapping[str, DataType],
    split: Split,
    wanted: Wanted,
    first: int,
) -> Chunk | None:
    """The records as columns, where the file declares the types that the columns have."""
    for name, kind in types.items():
        if isinstance(kind, _NOT_PLAIN) or wanted.schema.get(name) != kind:
            return None
    try:
        arrays = {
            name: pa.array([value[name] for value in values], arrow_type(kind))
            for name, kind in types.items()
        }
        rows = pa.RecordBatch.from_pydict(arrays)
        columns = typed_columns(rows, wanted.schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # UUIDs, times of day, and what does not fit: the exact reader knows.
        return None
    if columns is None:
        return None

    def raw(index: int) -> bytes:
        ((text, _),) = records_of_values(iter(values[index : index + 1]))
        return text

    return Chunk(split.file, first, len(values), rows.nbytes, columns, raw)


AVRO: Final = Kind(_pieces, _portions)
