"""The first batch of a table: some messages say what its columns are, if the others agree.

Without columns every message is read one by one, which takes several times as long. The result is
what that would give: where another message has other columns or types, all is read that way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from polynya.formats.base import ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.landed_file import landed_file
from polynya.formats.landed.batch import opened_batch
from polynya.model.config.streaming.content import AutoContent, JsonContent
from polynya.model.contract.stream_headers import STREAM_HEADER_NAMES
from polynya.model.datatypes import Void

#: So many messages say what the columns are...
MESSAGES: Final = 1_000
#: ...where there are at least so many.
MANY: Final = 4 * MESSAGES

Read = Callable[[ReadRequest], DatasetBatch]


def read_first(request: ReadRequest, read: Read) -> DatasetBatch:
    """Read the first batch of a table by `read`, with the columns of its first messages.

    Raises as `read`.
    """
    if not _holds_many(request):
        return read(request)
    limits = BatchLimits(MESSAGES, request.limits.max_bytes)
    guess = read(replace(request, limits=limits))
    if not guess.schema or guess.rejected or any(kind == Void() for kind in guess.schema.values()):
        return read(request)
    known = replace(request.table, schema=guess.schema)
    batch = read(replace(request, tables={request.table.source: known}))
    agrees = batch.schema == guess.schema and not batch.rejected
    return batch if agrees else read(request)


def is_first(request: ReadRequest) -> bool:
    """Whether nothing is known of the columns of the table."""
    return not request.table.schema.keys() - STREAM_HEADER_NAMES


def _holds_many(request: ReadRequest) -> bool:
    """Whether it is worth to look: the first landed batch has many messages of JSON."""
    part = request.files[0]
    try:
        with landed_file(request.store, part.path, "parquet") as file:
            footer, _ = opened_batch(file, part.path)
    except UnreadableFileError:
        return False
    is_json = isinstance(footer.content, JsonContent | AutoContent)
    return is_json and min(footer.counts.records, request.limits.max_rows) >= MANY
