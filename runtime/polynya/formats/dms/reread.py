"""Reading quarantined records of DMS files again: the raw bytes and the file's name are enough."""

from __future__ import annotations

from collections.abc import Collection

from polynya.formats.base import RereadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch
from polynya.formats.dms.reader import declared_types, to_batch
from polynya.formats.dms.rows import reopen_dms
from polynya.formats.dms.tables import dms_file, kind_of
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.files.folders import by_kind
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.rows import ColumnTypes, Evolving


def groups_of(files: Collection[str]) -> list[set[str]]:
    """Files of one kind make one batch."""
    return by_kind(files, kind_of)


def reread_dms(request: RereadRequest) -> DatasetBatch:
    """Read records of one group again, as one batch."""
    dataset, known = request.table.dataset, request.table.schema
    buffer = RecordBuffer(BatchLimits())
    kind = "csv"
    for record in request.records:
        named = dms_file(record.file)
        kind = named.kind
        try:
            for _, parsed in reopen_dms(record.raw, named, dataset).records:
                buffer.add(record.file, record.offset, record.raw, parsed)
        except UnreadableFileError as error:
            refused = RecordError("bad_csv", str(error))
            buffer.add(record.file, record.offset, record.raw, refused)
    # JSON spells binary, decimals and times as text: the types of the table say what they are.
    declared = {**({} if kind == "csv" else known), **declared_types(dataset)}
    evolving = Evolving(
        dataset.policies.schema_evolution,
        frozenset(declared_types(dataset)),
        excluded=frozenset(dataset.events.except_columns),
    )
    types = ColumnTypes(known, declared, evolving=evolving)
    return to_batch(buffer, dataset, types, kind)
