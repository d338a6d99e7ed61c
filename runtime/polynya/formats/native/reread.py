"""Reading quarantined records of native files again: their raw bytes are CSV or JSON."""

from __future__ import annotations

import io
from collections.abc import Collection

from polynya.formats.base import RereadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch
from polynya.formats.native.reader import to_batch, with_numbers
from polynya.formats.native.tables import is_load
from polynya.formats.records.openers import builder_of, record_opener, text_format
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.rows import ColumnTypes, Evolving
from polynya.model.config.dataset import ResolvedDataset


def groups_of(files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
    """Files of the first full load, whose records may lack a sequence, come first and apart."""
    loaded = {file for file in files if is_load(file, dataset)}
    return [group for group in (loaded, set(files) - loaded) if group]


def reread_native(request: RereadRequest) -> DatasetBatch:
    """Read records of one group again, as one batch."""
    dataset, known = request.table.dataset, request.table.schema
    written = text_format(dataset)
    opener = record_opener(dataset)
    buffer = RecordBuffer(BatchLimits())
    for record in request.records:
        for _, parsed in opener(io.BytesIO(record.raw), 0).records:
            buffer.add(record.file, record.offset, record.raw, parsed)
    # JSON spells binary, decimals and times as text: the types of the table say what they are.
    is_spelled = written != dataset.landing.format
    declared = {**known, **dataset.events.columns} if is_spelled else dict(dataset.events.columns)
    evolving = Evolving(
        dataset.policies.schema_evolution,
        frozenset(dataset.events.columns),
        excluded=frozenset(dataset.events.except_columns),
    )
    types = with_numbers(ColumnTypes(known, declared, evolving=evolving), dataset)
    load = any(is_load(record.file, dataset) for record in request.records)
    return to_batch(buffer, dataset, types, builder_of(written), load=load)
