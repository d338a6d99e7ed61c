"""Write the live rows of data files into a new one, as Arrow and row group by row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.iceberg.arrow_columns import as_stored
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.iceberg.reading import StoredFile, each_read
from polynya.lake.iceberg.staging import write_groups
from polynya.model.contract.headers import PARTITION
from polynya.observe.trace import count, span
from polynya.store.data_files import DataFiles

#: Rows of small files are collected up to a row group of this many.
_GROUP_ROWS = 250_000


@dataclass(frozen=True, slots=True)
class Source:
    """A data file that is written again: its footer, and the positions of the rows that go."""

    file: DataFile
    stored: StoredFile
    dead: pa.Array


@span("write live rows")
def write_live_rows(
    table: IcebergTable, store: DataFiles, sources: Sequence[Source], also: pa.Table | None = None
) -> DataFile | None:
    """One new file with the rows of `sources` that are not dead; None when there is no row.

    All of one partition of Iceberg, and so is the new file. `also` are rows of that partition in
    memory, which come first; columns of the table that they lack are NULL.
    """
    count("files_rewritten", len(sources))
    columns = table.columns()
    head = [] if also is None or not also.num_rows else [as_stored(also, columns)]
    empty = no_rows([one.stored for one in sources], columns, *head)
    groups = _grouped(empty, chain(head, _live(store, sources, columns)))
    first = next(groups, None)
    if first is None:
        return None
    # The rows of one file keep their order.
    order = sources[0].file.sort_order if len(sources) == 1 and not head else None
    return write_groups(table, sources[0].file.slot, chain([first], groups), order)


def no_rows(
    files: Sequence[StoredFile], columns: Sequence[Mapping[str, Any]], *others: pa.Table
) -> pa.Table:
    """An empty table with all columns that some of the files or `others` have, as stored."""
    kinds = [*(one.slice(0, 0) for one in others), *(one.empty(columns) for one in files)]
    return as_stored(pa.concat_tables(kinds, promote_options="default"), columns)


def _live(
    store: DataFiles, sources: Sequence[Source], columns: Sequence[Mapping[str, Any]]
) -> Iterator[pa.Table]:
    """Live rows, from as many row groups at the same time as are read best."""
    parts = [(source, group) for source in sources for group in source.stored.groups]
    for at in range(0, len(parts), store.readers):
        some = parts[at : at + store.readers]
        for rows in each_read(store, lambda part: _of_group(*part, columns), some):
            if rows.num_rows:
                yield rows


def rows_of_group(
    file: DataFile, stored: StoredFile, group: int, columns: Sequence[Mapping[str, Any]]
) -> pa.Table:
    """All rows of a row group, deleted ones too, with the columns that the file has, as stored."""
    rows = stored.read(group, stored.own(columns))
    # A file need not hold the column that its partition is made of.
    partition = pa.repeat(pa.scalar(file.partition, pa.string()), rows.num_rows)
    others = rows.drop_columns([name for name in rows.column_names if name == PARTITION])
    return as_stored(others.append_column(PARTITION, partition), columns)


def _of_group(source: Source, group: int, columns: Sequence[Mapping[str, Any]]) -> pa.Table:
    rows = rows_of_group(source.file, source.stored, group, columns)
    start = source.stored.starts[group]
    here = pa.arange(start, start + rows.num_rows)
    return rows.filter(pc.invert(pc.is_in(here, value_set=source.dead)))


def _grouped(empty: pa.Table, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, in tables that are not small and have the columns of `empty`."""
    held = [empty]
    for rows in tables:
        held.append(rows)
        if sum(one.num_rows for one in held) >= _GROUP_ROWS:
            yield pa.concat_tables(held, promote_options="default")
            held = [empty]
    if len(held) > 1:
        yield pa.concat_tables(held, promote_options="default")
