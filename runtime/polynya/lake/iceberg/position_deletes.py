"""Which rows of data files are deleted, read from v2 position deletes without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polynya.lake.iceberg.reading import local_path
from polynya.observe.trace import span

#: A place is one number: that of its data file, times this, plus its position in the file.
FILE_STEP = 1 << 40


@span("read deletes")
def deleted_places(paths: Sequence[str], deletes: Sequence[str]) -> pa.Array | None:
    """Places that position deletes name: (number of the path in `paths`) * FILE_STEP + pos.

    Those in other files are left out. None when a file cannot be read here.
    """
    local = [local_path(one) for one in deletes]
    if None in local:
        return None
    known = pa.array(paths, pa.string())
    found = [_places(path, known) for path in local if path is not None]
    return pa.concat_arrays([pa.array([], pa.int64()), *found])


def _places(path: str, known: pa.Array) -> pa.Array:
    # As a dictionary, because every row names one of a few files.
    with pq.ParquetFile(path, read_dictionary=["file_path"]) as file:
        rows = file.read(columns=["file_path", "pos"], use_threads=False)
    parts = [pa.array([], pa.int64())]
    for batch in rows.to_batches():
        files = batch.column("file_path")
        numbers = pc.index_in(files.dictionary, value_set=known).take(files.indices)
        places = pc.add(pc.multiply(numbers.cast(pa.int64()), FILE_STEP), batch.column("pos"))
        parts.append(places.drop_null())
    return pa.concat_arrays(parts)
