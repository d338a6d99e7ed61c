"""Reading quarantined messages again: their raw bytes say what they mean and where they stood."""

from __future__ import annotations

from polynya.formats.base import RereadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, Rejected
from polynya.formats.contents.decoded import Decoded, refuse_wide
from polynya.formats.errors import RecordError
from polynya.formats.stream.messages import Kept, kept_message
from polynya.formats.stream.reading import ready_message
from polynya.formats.stream.taken import Taken

_EVERYTHING = BatchLimits(1 << 62, 1 << 62)


def reread_stream(request: RereadRequest) -> DatasetBatch:
    """Read records of one group again, as one batch. Raises as `read_stream`."""
    raws = {(one.file, one.offset): one.raw for one in request.records}
    taken = Taken(request.table, lambda file, offset: raws[file, offset], _EVERYTHING)
    # JSON of records that had types, and fields of text: the types of the table say what they are.
    taken.is_text = False
    for record in request.records:
        kept = _kept(record)
        if isinstance(kept, RecordError):
            taken.buffer.add(record.file, record.offset, record.raw, kept)
        else:
            _take(taken, kept, record)
    return taken.batch()


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
        return kept_message(record.file, record.raw)
    except (ValueError, KeyError, TypeError) as error:
        return RecordError("bad_record", f"not what was kept of a message: {error}")
