"""Reload a table of a stream from its source, whether the stream is landed or read directly.

The load of a landed stream ends exactly where the newest landed batch ends, so that the next batch
repeats nothing. It must have as many messages as had landed up to there; otherwise the source no
longer has all of them. The load of a direct stream begins where the table began to read.
"""

from __future__ import annotations

from dataclasses import replace

from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.tasks.full_loads import gather_from_stream
from polynya.formats.files import nothing_to_reload, start_of
from polynya.formats.landed import StreamFooter
from polynya.lake.copy.reload import pairs_of_places
from polynya.lake.table.ownership import refuse_direct, refuse_landed
from polynya.model.config.dataset import KEEPING, ReloadMode, ResolvedDataset
from polynya.model.config.stream_landing import DirectTask, reading
from polynya.model.config.task import StorageTask
from polynya.model.error_catalogue.streams import (
    RELOAD_COUNT_DIFFERS,
    RELOAD_FILES_NOT_LANDED,
    RELOAD_FROM_SOURCE_IMPOSSIBLE,
    RELOAD_ORDER_UNKNOWN,
    RELOAD_SOURCE_INCOMPLETE,
)
from polynya.model.errors import OperationError
from polynya.model.names import shown
from polynya.model.positions import DirectPosition, LandedUntil
from polynya.streams.direct import DirectReader, NextRead, at_its_begin, streams_of
from polynya.streams.landing import LandedLog
from polynya.streams.registry import source_of
from polynya.streams.source import InOrder, MessageSource, Position
from polynya.transform.landed_only import landed_only


class DirectLoad:
    """The load of a reload: all that the source holds from where the table began to read."""

    def __init__(
        self,
        context: EngineContext,
        working: WorkingDataset,
        task: DirectTask,
        mode: ReloadMode,
        source: MessageSource | None = None,
    ) -> None:
        self._context, self._working, self._task, self._mode = context, working, task, mode
        self._source = source or source_of(context.spark, task.reads, context.access, context.clock)
        self._reader = DirectReader(task, self._source)
        self._streams: tuple[str, ...] | None = None

    def refuse(self, files: str | None) -> None:
        """Raise OperationError when the source cannot give all that the table has read."""
        refuse_landed(self._working.table)
        if files is not None:
            raise RELOAD_FILES_NOT_LANDED(where=f"task {self._task.name}")
        source = self._task.reads.source.files
        if source is not None and source.delete_after_load and self._mode != KEEPING:
            raise _source_incomplete(self._working, "files are deleted after they were read")
        self._wanted()

    def gather(self) -> None:
        """Gather until the end of the source, or until the run is stopped.

        Raises as `refuse`, SuspendedError or TaskStoppedError when a policy says that a batch may
        not be taken, and OperationError when the newest row of a record is undecidable.
        """
        gather_from_stream(self._working, self._reader, self._wanted, self._source.kind)
        if not self._context.stop.is_set() and self._streams is not None:
            refuse_disorder(self._working, self._source.order_of(self._streams))

    def _wanted(self) -> NextRead:
        """What is gathered next."""
        position = self._position()
        if self._streams is None:
            streams = streams_of(self._task, self._source, position)
            if not streams.taken and streams.refused is not None:
                raise streams.refused
            self._streams = streams.taken
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


def refuse_lost(working: WorkingDataset, wanted: NextRead, mode: ReloadMode) -> None:
    """Raise OperationError for records that the source has lost, if the mode would delete them."""
    if wanted.next.lost and mode != KEEPING:
        lost = wanted.next.lost[0]
        missing = f"{lost.at} from {lost.begin or 'its beginning'} on ({lost.why})"
        raise _source_incomplete(working, missing)


def refuse_disorder(working: WorkingDataset, in_order: InOrder) -> None:
    """Raise OperationError for rows of one record whose newest one is undecidable."""
    for first, second in pairs_of_places(working.table):
        if not in_order(first, second):
            raise RELOAD_ORDER_UNKNOWN(
                where=_task_of(working), dataset=working.name, first=first, second=second
            )


def _source_incomplete(working: WorkingDataset, missing: str) -> OperationError:
    return RELOAD_SOURCE_INCOMPLETE(where=_task_of(working), dataset=working.name, missing=missing)


def _task_of(working: WorkingDataset) -> str:
    return f"task {working.table.dataset.task}"


class LandedLoad:
    """The load of a reload: all that the source holds of what has landed.

    `until` is where that ends: with the newest landed batch when the reload began.
    """

    def __init__(
        self,
        context: EngineContext,
        working: WorkingDataset,
        task: StorageTask,
        mode: ReloadMode,
        source: MessageSource | None = None,
    ) -> None:
        refuse_direct(working.table)
        dataset = working.table.dataset
        folder = _folder(dataset)
        landing = context.landed_readers.landing_of(folder)
        if landing is None or dataset.landing.format != "stream":
            raise _impossible(
                dataset,
                f"no landing of this project lands it as a stream into {shown(folder)}",
                "leave out `--from`, or reload in the project that lands it. If `polynya validate` "
                "finds an error in a file of this project, fix it: until then not all landings are "
                "known",
            )
        value = landed_only(dataset)
        if value is not None:
            raise _impossible(dataset, f"{value}, which the source does not know")
        self._context, self._working, self._mode = context, working, mode
        self._source = source or source_of(
            context.spark, landing, context.access, context.clock, context.landing
        )
        self._task = reading(task, landing, folder.rpartition("/")[2])
        log = LandedLog(context.landing, landing.place, self._task.reads_table)
        newest = _newest(log, dataset)
        self._began = _began(newest, dataset)
        begun = None if working.reloading is None else working.reloading.until
        self.until = begun or _until(context, log, newest)
        self._again = self._source.again(log.table, self._began, self.until.end)
        self._reader = DirectReader(self._task, self._source, self._again.stream)

    def refuse(self, files: str | None) -> None:
        """Raise OperationError when the source no longer has everything that had landed."""
        if files is not None:
            raise _impossible(
                self._working.table.dataset, "a source has no landed files", "leave out `--files`"
            )
        self._wanted()

    def gather(self) -> None:
        """Gather until everything that had landed is read, or until the run is stopped.

        Raises as `refuse`, and OperationError when it is not what had landed: another number of
        messages, or rows of one record whose newest one is undecidable.
        """
        gather_from_stream(self._working, self._reader, self._wanted, self._source.kind)
        if not self._context.stop.is_set():
            self._refuse_other_count()
            refuse_disorder(self._working, self._source.order_of(self._again.streams))

    def _wanted(self) -> NextRead:
        wanted = self._reader.decide(self._again.streams, self._position(), once=True)
        refuse_lost(self._working, wanted, self._mode)
        return wanted

    def _position(self) -> DirectPosition:
        begun = self._working.reloading
        if begun is not None and begun.stream is not None:
            return begun.stream
        return DirectPosition(
            task=self._task.reads.name,
            table=self._task.reads_table,
            source=self._source.kind,
            number=0,
            began=self._began,
            end=self._again.begin,
            read_at=self._context.clock.now().isoformat(),
        )

    def _refuse_other_count(self) -> None:
        count, landed = self._position().totals.get("records", 0), self.until.records
        if count == landed or (count < landed and self._mode == KEEPING):
            return
        raise RELOAD_COUNT_DIFFERS(
            where=f"task {self._task.name}",
            why="the topic is compacted, or the source has deleted some messages or returns others",
            dataset=self._working.name,
            returned=count,
            landed=landed,
        )


def _folder(dataset: ResolvedDataset) -> str:
    """The folder of landed batches that a dataset reads, as far as its glob names one."""
    return start_of(dataset.landing.folder, dataset.landing.glob).rpartition("/")[0]


def _newest(log: LandedLog, dataset: ResolvedDataset) -> StreamFooter:
    newest = log.newest()
    if newest is None:
        raise nothing_to_reload(dataset, "nothing has landed of its stream yet")
    return newest


def _began(newest: StreamFooter, dataset: ResolvedDataset) -> Position:
    """Where the landing began to read, which all its batches say."""
    if newest.began is None:
        raise _impossible(
            dataset,
            "an older version landed its first batch and did not record where that begins",
        )
    return newest.began


def _until(context: EngineContext, log: LandedLog, newest: StreamFooter) -> LandedUntil:
    path = log.path(newest.number)
    return LandedUntil(path, context.landing.size(path), newest.end, newest.totals.records)


def _impossible(dataset: ResolvedDataset, reason: str, fix: str | None = None) -> OperationError:
    return RELOAD_FROM_SOURCE_IMPOSSIBLE(
        where=f"task {dataset.task}", fix=fix, table=dataset.relations.current, reason=reason
    )
