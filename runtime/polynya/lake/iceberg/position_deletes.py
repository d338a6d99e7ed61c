"""Which rows of data files are deleted, read from v2 position deletes without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polynya.lake.iceberg.reading import each_read, is_read_by
from polynya.observe.trace import span
from polynya.store.data_files import DataFiles

#: A place is one number: that of its data file, times this, plus its position in the file.
FILE_STEP = 1 << 40


@span("read deletes")
def deleted_places(
    files: DataFiles, paths: Sequence[str], deletes: Sequence[str]
) -> pa.Array | None:
    """Places that position deletes name: (number of the path in `paths`) * FILE_STEP + pos.

    Those in other files are left out. None when a file cannot be read here; raises OSError when
    that fails.
    """
    if not all(is_read_by(files, one) for one in deletes):
        return None
    known = pa.array(paths, pa.string())
    found = each_read(files, lambda one: _places(files, one, known), deletes)
    return pa.concat_arrays([pa.array([], pa.int64()), *found])


def _places(files: DataFiles, location: str, known: pa.Array) -> pa.Array:
    # As a dictionary, because every row names one of a few files.
    with (
        files.open(location) as source,
        pq.ParquetFile(source, read_dictionary=["file_path"]) as file,
    ):
        rows = file.read(columns=["file_path", "pos"], use_threads=False)
    parts = [pa.array([], pa.int64())]
    for batch in rows.to_batches():
        named = batch.column("file_path")
        numbers = pc.index_in(named.dictionary, value_set=known).take(named.indices)
        places = pc.add(pc.multiply(numbers.cast(pa.int64()), FILE_STEP), batch.column("pos"))
        parts.append(places.drop_null())
    return pa.concat_arrays(parts)
