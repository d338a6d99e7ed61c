"""A preview of a table that reads its stream directly, from its source; nothing is stored."""

from __future__ import annotations

from datetime import datetime

from polynya.engine.commands.preview_looks import NextRecords, PreviewTable
from polynya.engine.commands.preview_messages import OpenSource, lost_in_words, with_small_batches
from polynya.model.config.stream_landing import DirectTask
from polynya.streams.direct import DirectReader, streams_of


def direct_records(
    task: DirectTask, table: PreviewTable, opens: OpenSource, limit: int, now: datetime
) -> NextRecords:
    """Read what comes after the position of the table, or where it would begin.

    `limit` is how many records shall be shown. Raises what sources and decoders raise, and
    OperationError where a run would refuse the position.
    """
    if table.copy.reloading is not None:
        note = "a reload is under way, and the stream is left to it"
        return NextRecords(task, table, None, notes=(note,))
    few = task.model_copy(update={"reads": with_small_batches(task.reads, limit)})
    source = opens(few.reads)
    reader = DirectReader(few, source)
    position = table.copy.position.stream
    reader.refuse_other(position)
    streams = streams_of(few, source, position)
    if not streams.taken and streams.refused is not None:
        raise streams.refused
    notes = [] if streams.refused is None else [str(streams.refused)]
    wanted = reader.decide(streams.taken, position, once=True)
    notes += lost_in_words(wanted.next.lost)
    if not wanted.next.records:
        return NextRecords(task, table, None, notes=tuple(notes))
    read = reader.read(wanted, table.table, now)
    behind = f"{read.behind:,} more messages are behind these" if read.behind else ""
    return NextRecords(task, table, read.batch, 1, notes=(*notes, *filter(None, (behind,))))
