"""Reading landed batches of a stream: their messages are decoded, typed and placed."""

from __future__ import annotations

from dataclasses import replace

from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import DatasetBatch, FilePart, Limits
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.discovery import folder_of
from polynya.formats.files.landed_file import landed_file
from polynya.formats.landed.batch import batch_number, opened_batch
from polynya.formats.landed.messages import Messages
from polynya.formats.stream.first import is_first, read_first
from polynya.formats.stream.origins import Origins
from polynya.formats.stream.reading import Reading
from polynya.formats.stream.taken import Taken
from polynya.model.contract.landed_position import Read, spanned


def read_stream(request: ReadRequest) -> DatasetBatch:
    """Read the next batch; see `Format.read`.

    The batch also ends before a landed batch whose content is text with types to be inferred where
    those before it are none, or the other way round: both settle in different ways.

    Raises:
        OperationError: a landed batch cannot be read by this version (POLYNYA-STR-020), or its
            content cannot be used (POLYNYA-STR-021).
        DependencyError: the schema registry did not answer (POLYNYA-STR-022, -023).
    """
    return read_first(request, _read) if is_first(request) else _read(request)


def _read(request: ReadRequest) -> DatasetBatch:
    known: dict[str, Origins] = {}
    read: list[Read] = []
    taken = Taken(
        request.table,
        lambda file, offset: known[file].raw(offset),
        request.limits,
        load=request.load,
    )
    for part in request.files:
        if not taken.room:
            break
        try:
            messages = _messages(request, part, taken)
        except UnreadableFileError as error:
            taken.buffer.refuse_file(part, str(error))
            read.append(Read(_number(part.path), whole=True))
            continue
        if messages is None:
            break
        decoder = taken.decoder(messages.content)
        if taken.is_text not in {None, decoder.is_text}:
            break
        taken.is_text = decoder.is_text
        known[part.path] = Origins(messages, decoder)
        reading = Reading(taken, known[part.path], part)
        reading.take()
        read.append(_read_of(messages, reading))
    folder = folder_of(request.files[0].path) if request.files else ""
    return replace(taken.batch(), landed=spanned(folder, read))


def _read_of(messages: Messages, reading: Reading) -> Read:
    begin, whole = messages.before, reading.messages >= len(messages)
    return Read(_number(messages.file), whole, begin, begin + reading.messages)


def _number(path: str) -> int:
    number = batch_number(path)
    assert number is not None, "landed batches are named by their numbers"
    return number


def read_direct(
    known: KnownTable, messages: Messages, limits: Limits, *, load: bool
) -> tuple[DatasetBatch, int]:
    """Read messages that never landed: their batch, and how many went into it.

    `limits` may end it before the last. Its records stand where the source has their messages.
    Raises as `read_stream`.
    """
    origins: list[Origins] = []
    taken = Taken(known, lambda _, offset: origins[0].raw(offset), limits, load=load)
    decoder = taken.decoder(messages.content)
    taken.is_text = decoder.is_text
    origins.append(Origins(messages, decoder))
    reading = Reading(taken, origins[0], FilePart(messages.file, messages.values.nbytes))
    reading.take()
    batch = replace(taken.batch(), place_of=lambda _, offset: origins[0].place(offset))
    return batch.found_in_source(), reading.messages


def _messages(request: ReadRequest, part: FilePart, taken: Taken) -> Messages | None:
    """The messages of a landed batch, None when it is for the next batch.

    What is left of one that is read in part is decoded from its beginning then.
    """
    with landed_file(request.store, part.path, "parquet") as file:
        footer, reader = opened_batch(file, part.path)
        counts = footer.counts
        if not taken.is_empty and not taken.has_room_for(counts.records, counts.bytes):
            return None
        return Messages.of(part.path, footer, reader).with_time(footer.written_at)
