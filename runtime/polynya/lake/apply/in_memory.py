"""Fold events that are in order without a query, and decide where that is possible.

The events, the keys that they touch and the stored versions of these are read by Arrow. Whatever
speaks against it is logged as the reason, and the apply takes a query (`fast.py`): values that
versions inherit, a truncate, late events, tables or batches that are too large for one machine
(docs/adr/0013-applies-without-spark.md).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.collected import Collected
from polynya.lake.apply.in_memory_fold import fold_chains, fold_latest
from polynya.lake.apply.key_index import KeyIndexes
from polynya.lake.apply.probe import (
    NeededOrder,
    NeededRows,
    NeededVersions,
    Probe,
)
from polynya.lake.apply.records import (
    FILE,
    FOUND,
    IN_CURRENT,
    PLACE,
    POS,
    RECORD,
    TouchedRecords,
    is_exact,
)
from polynya.lake.apply.run import ApplyRun, CopyParts, FoundVersions
from polynya.lake.fold.fold import TruncateEvent
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import key_hash
from polynya.lake.iceberg.arrow_columns import arrow_type, typed
from polynya.lake.iceberg.deletes import FILE_STEP, deleted_places
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.reading import (
    KNOWN_FOOTERS,
    TableFile,
    each_read,
    is_read_by,
    stored_file,
)
from polynya.lake.iceberg.writing import PLACES
from polynya.lake.spark.arrow import collected_rows
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import quote
from polynya.observe.trace import span
from polynya.store.data_files import DataFiles

log = logging.getLogger(__name__)

#: Events, and bytes of their compressed files, that fit into the memory of the driver.
LOCAL_EVENTS = 500_000
LOCAL_BYTES = 32 * 1024 * 1024
#: Stored rows whose keys one machine reads sooner than Spark plans a query and scans them.
LOCAL_ROWS = 100_000_000
_HEADERS = (
    h.KEY_HASH,
    h.CHANGE_IDENTIFIER,
    h.SEQUENCE_TAIL,
    h.SOURCE_POSITION,
    h.OPERATION,
    h.TIMESTAMP,
    h.UNSENT,
    h.OLD_KEY,
)
#: Bytes of Current's files up to which reading all columns here beats a query, on disk (2 M
#: rows took a third of the time) and over a network.
LOCAL_WHOLE, FAR_WHOLE = 1024 * 1024 * 1024, 128 * 1024 * 1024
#: Bytes of stored versions in files; what is read of smaller tables stays in memory.
KEPT_TABLE = 16 * 1024 * 1024
_OF_STORED = tuple(name for name in FOUND.names if name in h.HEADER_NAMES)

Files = Sequence[tuple[DataFile, TableFile]]


def fold_in_memory(
    run: ApplyRun,
    truncates: Sequence[TruncateEvent],
    now: datetime,
    indexes: KeyIndexes | None = None,
) -> Collected | None:
    """Fold pending events that are in order, without a query; None where that is not possible.

    Keys of large files are looked up in `indexes`, where that pays; None: all are read.
    """
    pending = run.target.table.files(Partition.CHANGES, run.snapshot)
    kept = _kept(run)
    store = run.target.table.reach().reads
    reason = needs_query(run.shape, pending, kept, store, truncates=bool(truncates))
    if run.fresh is not None:
        reason = _why_not_fresh(run.fresh, pending) or reason
    if reason is None and not isinstance(store, str):
        try:
            folded = _folded(run, store, pending, now, indexes=indexes)
        except (OSError, pa.ArrowInvalid) as error:
            # What can be read is for Spark to say. A commit may have dropped a file of deletes.
            run.target.table.forget_deletes()
            reason = f"a file was not read: {error}"
        else:
            if not isinstance(folded, str):
                return folded
            reason = folded
    log.debug("apply of %s by a query: %s", run.target.table.name, reason)
    return None


def _kept(run: ApplyRun) -> list[DataFile]:
    """The data files of stored versions."""
    return [
        file for partition in (Partition.CURRENT, Partition.PRIOR)
        for file in run.target.table.files(partition, run.snapshot)
    ]  # fmt: skip


def needs_query(
    shape: Shape,
    pending: Iterable[DataFile],
    kept: Collection[DataFile],
    store: DataFiles | str,
    *,
    truncates: bool,
    limit: int = LOCAL_EVENTS,
) -> str | None:
    """Why pending events cannot be folded without a query, None when they may be.

    `store` reads the files, or is the reason why nothing here does.
    """
    if isinstance(store, str):
        return store
    events, size = 0, 0
    for file in pending:
        events, size = events + file.rows, size + file.size_bytes
    if shape.partial or shape.links or (shape.soft_delete and not shape.history):
        return "versions inherit values from versions that may not be stored as they were sent"
    if truncates:
        return "a truncate is known"
    if shape.replaces:
        return "a record deletes elements that it lacks"
    if not all(is_exact(shape.columns[key]) for key in shape.keys):
        return "a key has a type whose values are not compared exactly"
    if events > limit or size > LOCAL_BYTES:
        return f"{events:,} events of {size:,} bytes are too many"
    return _is_large(shape, kept, store)


def _why_not_fresh(fresh: CopyParts, pending: Collection[DataFile]) -> str | None:
    """Why a batch that is copied by the same commit is not folded without a query."""
    if fresh.count is None or fresh.count > LOCAL_EVENTS:
        return "it is not known that the batch that is being copied has few events"
    if fresh.instead or (pending and not isinstance(fresh.events, pa.Table)):
        return "the events of a batch that is being copied are not all that there is"
    return None


def _is_large(shape: Shape, kept: Collection[DataFile], store: DataFiles) -> str | None:
    """Why stored versions are found sooner by a query, None when they are not."""
    current = [file for file in kept if file.partition == Partition.CURRENT]
    whole = FAR_WHOLE if store.far else LOCAL_WHOLE
    if shape.history and sum(file.size_bytes for file in current) > whole:
        return "all columns of a table of this size are read sooner by a query"
    if sum(file.rows for file in current) > LOCAL_ROWS:
        return "the table is large enough for a scan by all executors"
    if store.far and len(kept) > KNOWN_FOOTERS:
        return f"the footers of {len(kept):,} files would be fetched again in every apply"
    return None


@span("fold in memory")
def _folded(
    run: ApplyRun,
    store: DataFiles,
    pending: Sequence[DataFile],
    now: datetime,
    *,
    indexes: KeyIndexes | None,
) -> Collected | str:
    """The fold, or why it takes a query."""
    shape, table = run.shape, run.target.table
    columns = {column["name"]: column for column in table.columns()}
    changes = _opened(store, pending, [columns[name] for name in (*_HEADERS, *shape.data)])
    if changes is None:
        return "a file is in another place, or not as the table is now"
    events = _read_events(store, changes, columns, shape)
    if run.fresh is not None:
        copied = _fresh_events(run, run.fresh, columns)
        if copied is None:
            return "a nested column is not in the batch that is being copied"
        events = copied if events is None else pa.concat_tables([events, copied]).combine_chunks()
    if events is None or not _are_plain(events, shape):
        return "there are no events, or some carry what only the fold knows"
    records = TouchedRecords([events.column(key) for key in shape.keys])
    found = None if run.fresh is None else run.fresh.found
    if found is not None and found.snapshot == run.snapshot:
        alive = _known(found, records, shape)
    else:
        read = _find(run, records, _wanted(shape, events), indexes)
        if isinstance(read, str):
            return read
        found, alive = read, read.rows
    fold = fold_chains if shape.history else fold_latest
    made = fold(events, records, alive, shape, now)
    if made is None:
        return "events are late, or claim one place, or their times go backwards"
    newest = pc.max(events.column(h.CHANGE_IDENTIFIER)).as_py()
    places = _places(alive, found.paths, shape)
    # Of each record with an event a fold in order writes a version: that event, or its tombstone.
    return Collected(
        made.rows, places, made.figures, newest, 0, found.deleted, writes_all_keys=True
    )


def _find(
    run: ApplyRun,
    records: TouchedRecords,
    wanted: NeededVersions,
    indexes: KeyIndexes | None,
    *,
    later: Sequence[str] = (),
) -> FoundVersions | str:
    """The live ones of the stored versions of records that are `wanted`, or why not.

    Columns that are read `later` are in the files as the table has them.
    """
    shape, table = run.shape, run.target.table
    store = table.reach().reads
    assert not isinstance(store, str), "`needs_query` has said so"
    kept = _kept(run)
    pending = table.files(Partition.CHANGES, run.snapshot)
    columns = {column["name"]: column for column in table.columns()}
    names = dict.fromkeys((*_stored_columns(shape), *later))
    stored = _opened(store, kept, [columns[name] for name in names])
    deletes = table.position_deletes(run.snapshot)
    if stored is None or deletes is None:
        return "a file is in another place, or not as the table is now"
    paths = tuple(file.path for file in (*kept, *pending))
    keep = sum(file.size_bytes for file in kept) <= KEPT_TABLE
    deleted = deleted_places(store, paths, deletes, keep=keep)
    events_from = len(kept) * FILE_STEP
    if deleted is None or pc.any(pc.greater_equal(deleted.places, events_from)).as_py():
        return "events were deleted, or deletes are in another place"
    keys = [columns[key] for key in shape.keys]
    matches = Probe(store, stored, columns, keys, indexes, keep).find(records, wanted)
    dead = deleted.hold(matches.column(PLACE).combine_chunks())
    alive = matches.filter(pc.invert(dead))
    return FoundVersions(run.snapshot, alive, paths, deleted, keep)


def find_versions(
    run: ApplyRun,
    keys: Sequence[pa.Array],
    *,
    place: str,
    now: datetime,
    indexes: KeyIndexes | None = None,
) -> FoundVersions | str:
    """The stored versions of some records, for a step that compares rows with them.

    `keys` are the columns of the key of the table, in its types. The events of the step get the
    change identifier `place` and the time `now`. The reason, as a sentence, where they are not
    found here; raises OSError and pa.ArrowInvalid for a file that cannot be read.
    """
    shape, table = run.shape, run.target.table
    kept = _kept(run)
    store = table.reach().reads
    pending = table.files(Partition.CHANGES, run.snapshot)
    truncates = bool(run.target.state.apply.truncates)
    reason = needs_query(shape, pending, kept, store, truncates=truncates)
    if pending:
        reason = "it has pending changes"
    current = [file for file in kept if file.partition == Partition.CURRENT]
    rows, size = sum(file.rows for file in current), sum(file.size_bytes for file in current)
    if len(keys[0]) > LOCAL_EVENTS or len(keys[0]) * size > LOCAL_BYTES * max(1, rows):
        reason = f"{len(keys[0]):,} rows are too many"
    if reason is not None or isinstance(store, str):
        return str(reason)
    wanted: NeededVersions = NeededOrder(place, now)
    if shape.history:
        wanted = NeededRows(_stored_columns(shape))
    return _find(run, TouchedRecords(keys), wanted, indexes, later=shape.data)


def _known(found: FoundVersions, records: TouchedRecords, shape: Shape) -> pa.Table:
    """Those of the versions that belong to some records, with their numbers."""
    rows = found.rows
    if not rows.num_rows:
        return rows
    numbers = records.of([rows.column(key).combine_chunks() for key in shape.keys])
    at = rows.schema.get_field_index(RECORD)
    return rows.set_column(at, rows.schema.field(at), numbers.cast(pa.int32())).filter(
        numbers.is_valid()
    )


def _opened(
    store: DataFiles, files: Sequence[DataFile], columns: Sequence[Mapping[str, Any]]
) -> list[tuple[DataFile, TableFile]] | None:
    """The files with their footers; None when one cannot give these columns here."""
    if not all(is_read_by(store, file.path) for file in files):
        return None
    opened = each_read(store, lambda file: stored_file(store, file.path), files)
    if not all(file.reads(columns) for file in opened):
        return None
    return list(zip(files, opened, strict=True))


@span("read events")
def _read_events(
    store: DataFiles, files: Files, columns: Mapping[str, Mapping[str, Any]], shape: Shape
) -> pa.Table | None:
    """All pending events; None when there is none."""
    wanted = [columns[name] for name in (*_HEADERS, *shape.data)]
    parts = [(stored, group) for _, stored in files for group in stored.groups]
    read = each_read(store, lambda part: part[0].read(part[1], wanted), parts)
    return pa.concat_tables(read).combine_chunks() if read else None


def _fresh_events(
    run: ApplyRun, fresh: CopyParts, columns: Mapping[str, Mapping[str, Any]]
) -> pa.Table | None:
    """The events of a batch that is being copied, as `_read_events` gives those of files.

    None where a nested column is missing: as in a file, its NULLs take a query.
    """
    names = [name for name in (*_HEADERS, *run.shape.data) if name != h.KEY_HASH]
    if isinstance(fresh.events, pa.Table):
        rows = fresh.events
    else:
        hashed = f"{key_hash(run.shape)} AS {h.KEY_HASH}"
        rows = collected_rows(fresh.events.selectExpr(hashed, *map(quote, names)))
    arrays: dict[str, Any] = {}
    for name in (*_HEADERS, *run.shape.data):
        kind = columns[name]["type"]
        if name in rows.column_names:
            values = rows.column(name).combine_chunks()
            arrays[name] = values.cast(typed(values.type, kind))
        elif (plain := arrow_type(kind)) is not None:
            arrays[name] = pa.nulls(rows.num_rows, plain)
        else:
            return None
    return pa.table(arrays)


def _are_plain(events: pa.Table, shape: Shape) -> bool:
    """Whether there are events, and none has what the folds in memory ignore."""
    if events.num_rows == 0:
        return False
    nothing = all(events.column(name).null_count == len(events) for name in (h.UNSENT, h.OLD_KEY))
    full = all(
        events.column(name).null_count == 0
        for name in (h.KEY_HASH, h.CHANGE_IDENTIFIER, h.OPERATION, h.TIMESTAMP)
    )
    if shape.looks and pc.any(pc.equal(events.column(h.OPERATION), "L"), min_count=0).as_py():
        return False
    return nothing and full and not _any_expired(events, shape)


def _any_expired(events: pa.Table, shape: Shape) -> bool:
    """Whether an event is so old that its version has no place in the table."""
    if shape.expired is None:
        return False
    column, before = shape.expired
    micros = pa.timestamp("us", "UTC")
    ages = events.column(column).cast(pa.timestamp("us")).cast(pa.int64())
    limit = pa.scalar(before, micros).cast(pa.int64())
    return bool(pc.any(pc.less(ages, limit), min_count=0).as_py())


def _stored_columns(shape: Shape) -> tuple[str, ...]:
    """Columns that may be needed of stored versions."""
    return (*_OF_STORED, *(shape.data if shape.history else shape.keys))


def _wanted(shape: Shape, events: pa.Table) -> NeededVersions:
    """What the fold of events needs of the versions that are stored."""
    if shape.history:
        return NeededRows(_stored_columns(shape))
    oldest = pc.min(events.column(h.CHANGE_IDENTIFIER)).as_py()
    return NeededOrder(oldest, pc.min(events.column(h.TIMESTAMP)).as_py())


def _places(alive: pa.Table, paths: Sequence[str], shape: Shape) -> pa.Table:
    """Where the versions are that go: with history all, without it those of Current."""
    gone = alive if shape.history else alive.filter(alive.column(IN_CURRENT))
    part = pc.if_else(gone.column(IN_CURRENT), str(Partition.CURRENT), str(Partition.PRIOR))
    files = pa.array(paths, pa.string()).take(gone.column(FILE).combine_chunks())
    return pa.table([part, files, gone.column(POS)], PLACES)
