"""A dataset whose source gives full extracts: each is compared with what the table holds.

An extract is a reload that begins by itself (docs/adr/0021-reloads-and-extracts.md): it gathers
beside Current and moves in one commit, so that a killed run goes on where it stood.
"""

from __future__ import annotations

from polynya.engine.tasks.gather import Load, gather, take_in
from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.landing import TaskLanding
from polynya.engine.work.tables import OpenTables
from polynya.engine.work.tidying.beside import MaintenanceBeside
from polynya.engine.work.turns.unit import IDLE, TOO_LONG, Ended, Turn
from polynya.formats.batch import FilePart
from polynya.formats.files.discovery import Discovery, unread
from polynya.formats.files.extracts import Extract, LandedExtracts, landed_extracts, refused_batch
from polynya.lake.copy import reload as lake
from polynya.lake.table.copy_state import Reloading
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.extracts import Extracts
from polynya.model.config.reload import DELETING, KEEPING, ReloadMode
from polynya.model.config.task import StorageTask
from polynya.model.contract.headers import Partition
from polynya.observe.data import ExtractApplied, ExtractRestarted, ExtractWaiting

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
        self._landing = TaskLanding(context, task)
        self._tables = OpenTables(context, task)
        self._maintenance = MaintenanceBeside(dataset)

    def step(self, turn: Turn) -> Ended:
        """Take in one extract whole and once; when there is no more apply if it is worth it."""
        with self._tables.in_use():
            table = self._tables.of(self._dataset)
            ended = table.bring_up(self._task.apply, turn, lambda: self._next(table, turn))
            return self._maintenance.after(table, ended)

    def _next(self, table: WorkingDataset, turn: Turn) -> Ended:
        due = self._landed(table).due
        if turn.must_wait_for(sum(info.size for one in due for info in one.files)):
            return TOO_LONG
        return turn.more if self._take_in(table) else IDLE

    def _take_in(self, table: WorkingDataset) -> bool:
        """Take in one extract; whether there may be another one now."""
        landed = self._landed(table)
        self._tell(table, landed)
        if landed.refused:
            batch = refused_batch(landed.refused, self._landing.read(table, (), load=True))
            table.copy(batch, live_files=self._landing.paths())
        reloading = table.table.state.copy.reloading
        if reloading is None:
            if not landed.due:
                return False
            reloading = self._begin(table, landed.due[0])
        if reloading.extract is None:
            self._wait(table, reloading.mode, "`polynya reload` ends what it began")
            return False
        table.table.take_over()
        if all(one.name != reloading.extract for one in landed.due):
            self._give_up(table, reloading.extract, "it left the landing zone")
            return True
        changed = gather(table, self._load(table, reloading.extract))
        if changed is not None:
            # Whoever writes it may not be done: the next run begins with it again.
            self._give_up(table, reloading.extract, f"{changed} changed or left")
            return False
        if not self._context.stop.is_set():
            self._finish(table, lake.under_way(table.table))
        return True

    def _give_up(self, table: WorkingDataset, extract: str, why: str) -> None:
        lake.abandon(table.table)
        table.tell(ExtractRestarted(subject=table.name, extract=extract, reason=why))

    def _wait(self, table: WorkingDataset, what: str, why: str) -> None:
        if self._context.is_news(f"{table.name} extract {what}", why):
            table.tell(ExtractWaiting(subject=table.name, extract=what, reason=why))

    def _landed(self, table: WorkingDataset) -> LandedExtracts:
        landed = self._landing.files()
        last = table.table.state.copy.position.last_extract
        return landed_extracts(landed, self._dataset, self._settings, table.progress, last)

    def _begin(self, table: WorkingDataset, extract: Extract) -> Reloading:
        now = extract.time or self._context.clock.now()
        snapshot = table.table.state.snapshot
        mode: ReloadMode = DELETING if self._settings.absent == "delete" else KEEPING
        if not any(table.table.table.files(one, snapshot) for one in _HOLDING):
            # The first full load: there is nothing to compare with.
            mode = "drop_and_create"
        return lake.begin(table.table, mode, now=now, extract=extract.name)

    def _load(self, table: WorkingDataset, name: str) -> Load:
        def files_of_extract() -> Extract:
            return next(
                (one for one in self._landed(table).due if one.name == name),
                Extract(name, None, ()),
            )

        return Load(
            find=lambda done: unread(files_of_extract().files, done, may_grow=False),
            read=lambda files: self._landing.read(table, files, load=True),
        )

    def _finish(self, table: WorkingDataset, gathered: Reloading) -> None:
        applied = take_in(
            table, incomplete=self._settings.incomplete, live_files=self._landing.paths()
        )
        table.tell(
            ExtractApplied(
                subject=table.name,
                extract=gathered.extract,
                time=gathered.started,
                rows_loaded=gathered.rows,
                rows_quarantined=gathered.quarantined,
                complete=gathered.is_whole,
            )
        )
        table.tell_applied(applied)

    def _tell(self, table: WorkingDataset, landed: LandedExtracts) -> None:
        due = [FilePart.of(info) for one in landed.due for info in one.files]
        table.found(Discovery(tuple(due), tuple(landed.changed)))
        for folder in landed.waiting:
            self._wait(table, folder, f"its file {self._settings.marker} has not landed")
