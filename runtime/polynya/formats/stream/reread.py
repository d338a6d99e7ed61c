"""Reading quarantined messages again: their raw bytes say what they mean and where they stood."""

from __future__ import annotations

from dataclasses import replace

from polynya.formats.base import RereadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, Rejected
from polynya.formats.contents.decoded import Decoded
from polynya.formats.errors import RecordError
from polynya.formats.landed.messages import Kept, kept_message
from polynya.formats.records.sizes import refuse_wide
from polynya.formats.stream.order import place_of
from polynya.formats.stream.reading import ready_message
from polynya.formats.stream.taken import Taken

_EVERYTHING = BatchLimits(1 << 62, 1 << 62)


def reread_stream(request: RereadRequest) -> DatasetBatch:
    """Read records of one group again, as one batch. Raises as `read_stream`."""
    # By the places that say where records stand in the order; quarantine may name others.
    records: dict[tuple[str, int], Rejected] = {}
    taken = Taken(request.table, lambda file, offset: records[file, offset].raw, _EVERYTHING)
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


def _placed(kept: Kept, record: Rejected) -> Rejected:
    """The record at its place in the order, which its message may say."""
    if kept.place is None:
        return record
    file, offset = place_of(kept.place)
    return replace(record, file=file, offset=offset)


def _take(taken: Taken, kept: Kept, record: Rejected) -> None:
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


def _kept(record: Rejected) -> Kept | RecordError:
    try:
        kept = kept_message(record.file, record.raw)
        if kept.place is None:
            return kept
        # What is refused again is kept with its place again.
        file, _ = place_of(kept.place)
        return replace(kept, messages=replace(kept.messages, file=file, direct=True))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return RecordError("bad_record", f"not what was kept of a message: {error}")
