"""Reload a table that reads its stream itself: from the source, as far as that has the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from polynya.engine.tasks.gather import gather_stream
from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.formats.files.full_load import nothing_to_reload
from polynya.lake.copy.loaded_places import pairs_of_places
from polynya.lake.table.guards import refuse_landed
from polynya.model.config.reload import KEEPING, ReloadMode
from polynya.model.config.streaming.direct import DirectTask
from polynya.model.contract.direct_position import DirectPosition
from polynya.model.errors import OperationError
from polynya.streaming.direct.reader import DirectReader, Wanted, at_its_begin
from polynya.streaming.direct.streams import streams_of
from polynya.streaming.registry import source_of
from polynya.streaming.source import InOrder, Source

UNMOVED: Final = "what was loaded is kept beside Current, which is as before"


class DirectLoad:
    """The load of a reload: all that the source holds from where the table began to read."""

    def __init__(
        self,
        context: EngineContext,
        working: WorkingDataset,
        task: DirectTask,
        mode: ReloadMode,
        source: Source | None = None,
    ) -> None:
        self._context, self._working, self._task, self._mode = context, working, task, mode
        self._source = source or source_of(context.spark, task.reads, context.access, context.clock)
        self._reader = DirectReader(task, self._source)
        self._streams: tuple[str, ...] | None = None

    def refuse(self, files: str | None) -> None:
        """Raise OperationError when the source cannot give all that the table has read."""
        refuse_landed(self._working.table)
        if files is not None:
            raise OperationError(
                "POLYNYA-STR-067",
                "a stream that never landed has no files",
                where=f"task {self._task.name}",
                state="nothing was changed",
                fix="leave `--files` out: the stream is read from where the table began",
            )
        source = self._task.reads.source.files
        if source is not None and source.delete_after_load and self._mode != KEEPING:
            raise overtaken(self._working, "files are deleted once they were read")
        self._wanted()

    def gather(self) -> None:
        """Gather until nothing is left of what there was, or until told to stop.

        Raises as `refuse`, SuspendedError or TaskStoppedError when a policy says that a batch may
        not be taken, and OperationError when nobody can tell the newest row of a record.
        """
        gather_stream(self._working, self._reader, self._wanted, self._source.kind)
        if not self._context.stop.is_set() and self._streams is not None:
            refuse_disorder(self._working, self._source.order_of(self._streams))

    def _wanted(self) -> Wanted:
        """What is gathered next."""
        position = self._position()
        if self._streams is None:
            found = streams_of(self._task, self._source, position)
            if not found.taken and found.refused is not None:
                raise found.refused
            self._streams = found.taken
        wanted = self._reader.decide(self._streams, position, once=True)
        refuse_lost(self._working, wanted, self._mode)
        return wanted

    def _position(self) -> DirectPosition:
        state = self._working.table.state.copy
        if state.reloading is not None and state.reloading.stream is not None:
            return state.reloading.stream
        if state.position.stream is None:
            dataset = self._working.table.dataset
            raise nothing_to_reload(dataset, "nothing was read of its stream yet")
        self._reader.refuse_other(state.position.stream)
        begin = at_its_begin(state.position.stream)
        return replace(begin, end=self._source.reread_from(begin.end))


def refuse_lost(working: WorkingDataset, wanted: Wanted, mode: ReloadMode) -> None:
    """Raise OperationError for what the source has no more, where that would be deleted."""
    if wanted.next.lost and mode != KEEPING:
        first = wanted.next.lost[0]
        raise overtaken(working, f"{first.at} from {first.begin or 'its begin'} on ({first.why})")


def refuse_disorder(working: WorkingDataset, in_order: InOrder) -> None:
    """Raise OperationError for rows of one record of which nobody can tell the newest."""
    for one, other in pairs_of_places(working.table):
        if not in_order(one, other):
            raise OperationError(
                "POLYNYA-STR-073",
                f"records of {working.name} have messages in {one} and in {other}: "
                "nobody can tell which of these came first",
                where=f"task {working.table.dataset.task}",
                state=UNMOVED,
                fix="give the load up with `--abandon`. Name a column with the order as "
                "`sequence_by`, or reload from landed batches where there are some",
            )


def overtaken(working: WorkingDataset, what: str) -> OperationError:
    """The error of a reload whose source has deleted something."""
    return OperationError(
        "POLYNYA-STR-066",
        f"the source has no longer all that {working.name} has read: {what}",
        where=f"task {working.table.dataset.task}",
        state="nothing was moved; Current is as before",
        fix="`--mode compare_and_apply_without_deleted_rows` takes what is there and keeps "
        "the other records",
    )
