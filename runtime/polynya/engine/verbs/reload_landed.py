"""Reload a table of landed batches from their source, which may have more than has landed.

What is read ends exactly where the newest landed batch ends, so that nothing comes twice with the
next one. It counts as much as had landed up to there, or it is not the same.
"""

from __future__ import annotations

from typing import Final

from polynya.engine.tasks.gather import gather_stream
from polynya.engine.verbs.reload_direct import UNMOVED, refuse_disorder, refuse_lost
from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.formats.files.discovery import start_of
from polynya.formats.files.full_load import nothing_to_reload
from polynya.formats.landed.batch import StreamFooter
from polynya.lake.table.guards import refuse_direct
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.reload import KEEPING, ReloadMode
from polynya.model.config.streaming.direct import reading
from polynya.model.config.task import StorageTask
from polynya.model.contract.direct_position import DirectPosition
from polynya.model.contract.identifiers import shown
from polynya.model.contract.landed_until import LandedUntil
from polynya.model.errors import OperationError
from polynya.streaming.direct.reader import DirectReader, Wanted
from polynya.streaming.landing.log import LandedLog
from polynya.streaming.registry import source_of
from polynya.streaming.source import Position, Source
from polynya.transform.landed_only import landed_only

_FROM_LANDED: Final = "Reload from what has landed; `folder_retention` says how long that is kept"


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
        source: Source | None = None,
    ) -> None:
        refuse_direct(working.table)
        dataset = working.table.dataset
        folder = _folder(dataset)
        landing = context.landed_readers.landing_of(folder)
        if landing is None or dataset.landing.format != "stream":
            raise _impossible(
                dataset,
                f"no landing of this project lands it as a stream into {shown(folder)}",
                "leave `--from` out, or ask in the project that lands it. If a file of this one is "
                "wrong (`polynya validate`), correct it: nobody knows all landings then",
            )
        told = landed_only(dataset)
        if told is not None:
            raise _impossible(dataset, f"{told}, which the source does not know", _FROM_LANDED)
        self._context, self._working, self._mode = context, working, mode
        self._source = source or source_of(context.spark, landing, context.access, context.clock)
        self._task = reading(task, landing, folder.rpartition("/")[2])
        log = LandedLog(context.landing, landing.place, self._task.reads_table)
        newest = _newest(log, dataset)
        self._began = _began(newest, dataset)
        begun = None if working.reloading is None else working.reloading.until
        self.until = begun or _until(context, log, newest)
        self._again = self._source.again(log.table, self._began, self.until.end)
        self._reader = DirectReader(self._task, self._source, self._again.stream)

    def refuse(self, files: str | None) -> None:
        """Raise OperationError when the source has no longer all that had landed."""
        if files is not None:
            raise _impossible(
                self._working.table.dataset, "a source has no landed files", "leave `--files` out"
            )
        self._wanted()

    def gather(self) -> None:
        """Gather until all is read that had landed, or until told to stop.

        Raises as `refuse`, and OperationError when it is not what had landed: another number of
        messages, or rows of one record of which nobody can tell the newest.
        """
        gather_stream(self._working, self._reader, self._wanted, self._source.kind)
        if not self._context.stop.is_set():
            self._refuse_other_count()
            refuse_disorder(self._working, self._source.order_of(self._again.streams))

    def _wanted(self) -> Wanted:
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
        raise OperationError(
            "POLYNYA-STR-072",
            f"the source gave {count:,} messages of {self._working.name}, "
            f"and {landed:,} had landed",
            why="it is compacted, or has deleted some, or gives others than it did",
            where=f"task {self._task.name}",
            state=UNMOVED,
            fix="`--abandon` it. `--mode compare_and_apply_without_deleted_rows` takes fewer "
            "messages and keeps the other records",
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
            "an older version landed its first batch and did not write down where that begins",
            _FROM_LANDED,
        )
    return newest.began


def _until(context: EngineContext, log: LandedLog, newest: StreamFooter) -> LandedUntil:
    path = log.path(newest.number)
    return LandedUntil(path, context.landing.size(path), newest.end, newest.totals.records)


def _impossible(dataset: ResolvedDataset, what: str, fix: str) -> OperationError:
    return OperationError(
        "POLYNYA-STR-070",
        f"{dataset.relations.current} cannot be reloaded from its source: {what}",
        where=f"task {dataset.task}",
        state="nothing was changed",
        fix=fix,
    )
