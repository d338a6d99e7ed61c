"""A dataset whose source gives full extracts: each is compared with what the table holds.

An extract is a reload that begins by itself (docs/adr/0021-full-extracts.md): it gathers beside
Current and moves in one commit, so that a killed run goes on where it stood.
"""

from __future__ import annotations

from polynya.engine.tasks.native import landed_files
from polynya.engine.work.context import EngineContext
from polynya.engine.work.gather import Load, gather
from polynya.engine.work.steps import (
    bring_up,
    copy_step,
    opened,
    progress_of,
    subject_of,
    tell_applied,
    tell_found,
)
from polynya.engine.work.views import publish
from polynya.formats.batch import BatchLimits, FilePart
from polynya.formats.files.discovery import Discovery, unread
from polynya.formats.native.extracts import Extract, LandedExtracts, landed_extracts, refused_batch
from polynya.formats.native.reader import read_native
from polynya.lake.apply.applier import ApplyResult
from polynya.lake.copy import reload as lake
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import Reloading
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.extracts import Extracts
from polynya.model.config.reload import DELETING, KEEPING, ReloadMode
from polynya.model.config.task import StorageTask
from polynya.model.contract.headers import Partition
from polynya.observe.events import Event

_HOLDING = (Partition.CURRENT, Partition.PRIOR, Partition.CHANGES)


class ExtractsDataset:
    """Brings one dataset up to date with its landed extracts."""

    def __init__(
        self,
        context: EngineContext,
        task: StorageTask,
        dataset: ResolvedDataset,
        settings: Extracts,
    ) -> None:
        self._context = context
        self._task = task
        self._dataset = dataset
        self._settings = settings
        self._limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
        self._target: DatasetTable | None = None
        self._told: set[str] = set()

    def run(self) -> None:
        """Apply all extracts that have landed, in order, each whole and once."""
        if self._target is None:
            self._target = opened(self._context, self._dataset)
        try:
            target = self._target
            bring_up(self._context, target, self._task.apply, lambda: self._take_in(target))
        except BaseException:
            # What this owner believes of the table may be wrong now.
            self._target = None
            raise

    def _take_in(self, target: DatasetTable) -> None:
        while not self._context.stop.is_set() and self._step(target):
            pass

    def _step(self, target: DatasetTable) -> bool:
        """Take in one extract; whether there may be another one now."""
        landed = self._landed(target)
        self._tell(target, landed)
        if landed.refused:
            batch = refused_batch(landed.refused, self._dataset, target.known_schema())
            copy_step(self._context, target, batch, self._live_files())
        reloading = target.state.copy.reloading
        if reloading is None:
            if not landed.due:
                return False
            reloading = self._begin(target, landed.due[0])
        if reloading.extract is None:
            self._wait(target, reloading.mode, "`polynya reload` ends what it began")
            return False
        target.take_over()
        if all(one.name != reloading.extract for one in landed.due):
            self._give_up(target, reloading.extract, "it left the landing zone")
            return True
        changed = gather(self._context, target, self._load(target, reloading.extract))
        if changed is not None:
            # Whoever writes it may not be done: the next run begins with it anew.
            self._give_up(target, reloading.extract, f"{changed} changed or left")
            return False
        if not self._context.stop.is_set():
            self._finish(target, lake.under_way(target))
        return True

    def _give_up(self, target: DatasetTable, extract: str, why: str) -> None:
        lake.abandon(target)
        self._say(target, "extract.restarted", extract, why)

    def _wait(self, target: DatasetTable, what: str, why: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._say(target, "extract.waiting", what, why)

    def _landed(self, target: DatasetTable) -> LandedExtracts:
        state, root = target.state.copy, self._dataset.landing.folder
        landed = self._context.landing.list(root)
        done = progress_of(target)
        return landed_extracts(landed, self._dataset, self._settings, done, state.last_extract)

    def _begin(self, target: DatasetTable, extract: Extract) -> Reloading:
        now = extract.time or self._context.clock.now()
        snapshot = target.state.snapshot
        mode: ReloadMode = DELETING if self._settings.absent == "delete" else KEEPING
        if not any(target.table.files(one, snapshot) for one in _HOLDING):
            # The first full load: there is nothing to compare with.
            mode = "drop_and_create"
        return lake.begin(target, mode, now=now, extract=extract.name)

    def _load(self, target: DatasetTable, name: str) -> Load:
        context, limits = self._context, self._limits

        def files_of_extract() -> Extract:
            return next(
                (one for one in self._landed(target).due if one.name == name),
                Extract(name, None, ()),
            )

        return Load(
            find=lambda done: unread(files_of_extract().files, done, may_grow=False),
            read=lambda files: read_native(
                context.landing, target.reading, files, target.known_schema(), limits, load=True
            ),
        )

    def _finish(self, target: DatasetTable, gathered: Reloading) -> None:
        applied = lake.finish(
            target,
            self._context.applier,
            now=self._context.clock.now(),
            incomplete=self._settings.incomplete,
            live_files=self._live_files(),
        )
        publish(self._context, target, target.shape())
        self._tell_applied(target, gathered, applied)

    def _live_files(self) -> set[str]:
        return landed_files(self._context, self._dataset.landing.folder)

    def _tell_applied(
        self, target: DatasetTable, gathered: Reloading, applied: ApplyResult
    ) -> None:
        fields = {
            "extract": gathered.extract,
            "time": gathered.started,
            "rows_loaded": gathered.rows,
            "rows_quarantined": gathered.quarantined,
            "complete": gathered.is_whole,
        }
        self._context.sink(Event("extract.applied", subject_of(target), fields))
        tell_applied(self._context, target, applied)

    def _tell(self, target: DatasetTable, landed: LandedExtracts) -> None:
        changed = [file for file in landed.changed if file.path not in self._told]
        self._told.update(file.path for file in changed)
        due = [FilePart(info.path, info.size) for one in landed.due for info in one.files]
        tell_found(self._context, target, Discovery(tuple(due), tuple(changed)))
        for folder in landed.waiting:
            self._wait(target, folder, f"its file {self._settings.marker} has not landed")

    def _say(self, target: DatasetTable, kind: str, extract: str, why: str) -> None:
        fields = {"extract": extract, "reason": why}
        self._context.sink(Event(kind, subject_of(target), fields))
