"""The streams of a table that reads them itself: which there are, and which of them it takes."""

from __future__ import annotations

from dataclasses import dataclass

from polynya.model.config.streaming.direct import DirectTask
from polynya.model.contract.direct_position import DirectPosition
from polynya.model.contract.identifiers import shown
from polynya.model.errors import OperationError, PolynyaError
from polynya.streaming.landing.arrivals import judge, waits
from polynya.streaming.source import Source


@dataclass(frozen=True, slots=True)
class FoundStreams:
    """The streams that a table takes, those that it leaves out, and why not all are there."""

    taken: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    refused: PolynyaError | None = None


def streams_of(task: DirectTask, source: Source, position: DirectPosition | None) -> FoundStreams:
    """The streams of the table of a task. `position` is that of the table.

    Raises TaskStoppedError when there are new ones, and the policy says so.
    """
    where, policy = f"task {task.reads.name}", task.reads.on_new_topic
    found = source.find()
    mine = {task.reads_table: found.tables.get(task.reads_table, ())}
    known = None if position is None else source.known(position.end)
    judged = judge(mine, known, policy, source.is_asked_for)
    waiting = waits(judged, policy, where)
    if waiting is not None and policy == "stop":
        raise waiting
    taken = judged.tables.get(task.reads_table, ())
    refused = waiting or found.refused
    if not taken and refused is None:
        refused = _missing(task, where)
    return FoundStreams(taken, judged.ignored, refused)


def _missing(task: DirectTask, where: str) -> OperationError:
    return OperationError(
        "POLYNYA-STR-064",
        f"the source has nothing for {shown(task.reads_table)}",
        where=where,
        state="nothing was read; a position that the table has stays",
        fix="create the topic or stream, or correct `stream` of the transform; it is looked for "
        "again and again",
    )
