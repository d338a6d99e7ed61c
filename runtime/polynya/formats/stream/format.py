"""Landed batches of streams behind the protocol of formats."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from typing_extensions import override

from polynya.formats.base import LandingFormat, ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FileProgress, Rejected
from polynya.formats.contents.decoded import Decoded
from polynya.formats.errors import RecordError
from polynya.formats.files import (
    Discovery,
    matching,
    nothing_to_reload,
    start_of,
    unread,
)
from polynya.formats.landed import KeptMessage, batch_number, kept_message
from polynya.formats.records.sizes import refuse_wide
from polynya.formats.stream.order import place_of
from polynya.formats.stream.reading import read_stream, ready_message
from polynya.formats.stream.taken import TableRecords
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask
from polynya.store.object_store import ObjectInfo

_FIRST = 1


def unread_of(
    landed: Iterable[ObjectInfo], done: Mapping[str, FileProgress], dataset: ResolvedDataset
) -> Discovery:
    """What is to be read next of a dataset. A landed batch is whole when it is there.

    Batches before the newest that was read were read, too, and nobody looks at them again. If no
    batch is as new as that, the folder was emptied and begins anew.
    """
    folder = start_of(dataset.landing.folder, dataset.landing.glob)
    newest = max((path for path in done if path.startswith(folder)), default="")
    everything = landed if isinstance(landed, Sequence) else list(landed)
    batches = list(_batches(everything, dataset, dataset.landing.glob, since=newest))
    if newest and not batches:
        batches, done = list(_batches(everything, dataset, dataset.landing.glob)), {}
    return unread(batches, done, may_grow=False)


def full_load(
    landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
) -> tuple[ObjectInfo, ...]:
    """All landed batches, or those that a glob names.

    Raises OperationError POLYNYA-LAKE-014 when the first ones are gone: records of which only they
    tell would be deleted.
    """
    found = tuple(_batches(landed, dataset, glob or dataset.landing.glob))
    first = min((batch_number(info.path) or _FIRST for info in found), default=_FIRST)
    if glob is None and first != _FIRST:
        raise nothing_to_reload(
            dataset,
            f"its first landed batch has number {first}; the batches before it are gone",
            fix="add `--mode compare_and_apply_without_deleted_rows` to keep the other records, or "
            f"`--files '{dataset.landing.glob}'` to delete them",
        )
    return found


def _batches(
    landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str, *, since: str = ""
) -> Iterator[ObjectInfo]:
    """Landed batches from one on; what has another name is none of them."""
    for info in matching(landed, dataset.landing.folder, glob, since=since):
        if batch_number(info.path) is not None:
            yield info


_EVERYTHING = BatchLimits(1 << 62, 1 << 62)


def reread_stream(request: RereadRequest) -> DatasetBatch:
    """Read records of one group again, as one batch. Raises as `read_stream`."""
    # By the places that say where records stand in the order; quarantine may name others.
    records: dict[tuple[str, int], Rejected] = {}
    taken = TableRecords(request.table, lambda file, offset: records[file, offset].raw, _EVERYTHING)
    # JSON of records that had types, and fields of text: the types of the table say what they are.
    taken.is_text = False
    for record in request.records:
        kept = _kept(record)
        if isinstance(kept, RecordError):
            records[record.file, record.offset] = record
            taken.buffer.add(record.file, record.offset, record.raw, kept)
        else:
            placed = _placed(kept, record)
            records[placed.file, placed.offset] = record
            _take(taken, kept, placed)
    batch = replace(taken.batch(), place_of=lambda *at: (records[at].file, records[at].offset))
    return batch.found_in_source()


def _placed(kept: KeptMessage, record: Rejected) -> Rejected:
    """The record at its place in the order, which its message may say."""
    if kept.place is None:
        return record
    file, offset = place_of(kept.place)
    return replace(record, file=file, offset=offset)


def _take(taken: TableRecords, kept: KeptMessage, record: Rejected) -> None:
    messages, decoder = kept.messages, taken.decoder(kept.messages.content)
    taken.meet(messages)
    taken.spelled |= kept.spelled or decoder.is_text
    message = ready_message(messages.values[0].as_py(), messages.content)
    found = next(iter(decoder.decode([message]))) if isinstance(message, bytes) else message
    if found is None:
        found = Decoded(({},))
    if isinstance(found, RecordError):
        taken.add(messages, 0, record.offset, found)
        return
    taken.learn(found, 0)
    if len(found.items) != 1:
        error = f"{len(found.items)} records, where it was one"
        taken.add(messages, 0, record.offset, RecordError("bad_record", error))
        return
    (item,) = refuse_wide(found.items)
    taken.add(messages, 0, record.offset, item)


def _kept(record: Rejected) -> KeptMessage | RecordError:
    try:
        kept = kept_message(record.file, record.raw)
        if kept.place is None:
            return kept
        # What is refused again is kept with its place again.
        file, _ = place_of(kept.place)
        return replace(kept, messages=replace(kept.messages, file=file, direct=True))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return RecordError("bad_record", f"not what was kept of a message: {error}")


class StreamFormat(LandingFormat):
    """What tasks of kind `streaming_landing` land."""

    def __init__(self, task: StorageTask) -> None:
        del task

    @override
    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        """The landed batches after the newest one that was read."""
        return unread_of(landed, done, dataset)

    @override
    def read(self, request: ReadRequest) -> ReadBatch:
        return ReadBatch({request.table.source: read_stream(request)})

    @override
    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        """All together: what was kept of each message says what it is."""
        del dataset
        return [set(files)]

    @override
    def reread(self, request: RereadRequest) -> ReadBatch:
        return ReadBatch({request.table.source: reread_stream(request)})

    @override
    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        """All landed batches from the first one on."""
        return full_load(landed, dataset, glob)
