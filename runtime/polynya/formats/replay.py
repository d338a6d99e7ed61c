"""Reading one quarantined record again, with today's settings and types.

The raw bytes that quarantine keeps are enough. A whole file (`WHOLE_FILE`) has none: it is read
again as a file.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace

from polynya.formats.batch import BatchLimits, DatasetBatch, Rejected
from polynya.formats.debezium.reader import DebeziumBatch, Reading
from polynya.formats.debezium.records import record_of
from polynya.formats.debezium.scope import DebeziumScope
from polynya.formats.native.reader import to_batch
from polynya.formats.records.openers import builder_of, record_opener
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.rows import ColumnTypes, Evolving
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.datatypes import DataType

#: Formats whose records are text already; the raw bytes of the others are JSON.
_TEXT_FORMATS = frozenset({"json", "csv"})


def reparse(
    raw: bytes,
    dataset: ResolvedDataset,
    known: Mapping[str, DataType],
    *,
    file: str,
    offset: int,
    load: bool = False,
) -> DatasetBatch:
    """Read one record of a native dataset again.

    Args:
        raw: as in `Rejected.raw` or the column `__raw`.
        dataset: today's settings.
        known: every source column so far.
        file: where the record came from.
        offset: its index there.
        load: it belongs to the first full load.

    Returns:
        A batch of one record, row or rejected; `files` is empty, since no file was read.
    """
    record = Rejected(file, offset, "", "", raw)
    return reparse_all([record], dataset, known, load=load)


def reparse_all(
    records: Sequence[Rejected],
    dataset: ResolvedDataset,
    known: Mapping[str, DataType],
    *,
    load: bool = False,
) -> DatasetBatch:
    """Read several records of a native dataset again, as one batch; see `reparse`."""
    is_text = dataset.landing.format in _TEXT_FORMATS
    file_format = dataset.landing.format if is_text else "json"
    opener = record_opener(dataset)
    buffer = RecordBuffer(BatchLimits())
    for record in records:
        for _, parsed in opener(io.BytesIO(record.raw), 0).records:
            buffer.add(record.file, record.offset, record.raw, parsed)
    # JSON spells binary, decimals and times as text: the types of the table say what they are.
    declared = dict(dataset.events.columns) if is_text else {**known, **dataset.events.columns}
    evolving = Evolving(dataset.policies.schema_evolution, frozenset(dataset.events.columns))
    types = ColumnTypes(known, declared, evolving=evolving)
    return to_batch(buffer, dataset, types, builder_of(file_format), load=load)


def reparse_debezium_all(
    records: Sequence[Rejected],
    scope: DebeziumScope,
    known: Mapping[str, Mapping[str, DataType]],
    keys: Mapping[str, tuple[str, ...]],
) -> DebeziumBatch:
    """Read several lines of a capture again, as one batch; see `reparse_debezium`."""
    reading = Reading(scope, BatchLimits(), {}, keys)
    for record in records:
        reading.take(record.file, record.offset, record_of(record.raw))
    batch = reading.to_batch(known)
    # What a record says of the columns was so in its time, and is no news of the source.
    parts = {name: replace(part, declared=None) for name, part in batch.datasets.items()}
    return replace(batch, datasets=parts)


def reparse_debezium(
    raw: bytes,
    scope: DebeziumScope,
    known: Mapping[str, Mapping[str, DataType]],
    *,
    file: str,
    offset: int,
    keys: Mapping[str, tuple[str, ...]] | None = None,
) -> DebeziumBatch:
    """Read one line of a capture again; arguments as for `reparse` and `read_debezium`."""
    return reparse_debezium_all([Rejected(file, offset, "", "", raw)], scope, known, keys or {})
