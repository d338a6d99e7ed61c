"""Which tables of a project read a folder of landed batches, how far each has, and what lands it.

What lands a stream asks before it removes batches, or lands more of them. It is told by the tables
themselves, so that it is right whoever copies them, on whichever node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from polynya.engine.work.ledger import ledger_dataset
from polynya.formats.files.discovery import glob_pattern, relative_to
from polynya.formats.landed.batch import batch_name
from polynya.formats.landed.reached import next_unread
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.naming import internal_path
from polynya.lake.table.copy_state import CopyState, Membership
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import named_datasets
from polynya.model.config.streaming.direct import DirectTask
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.config.task import StorageTask, resolved
from polynya.model.formats.registry import rules_of
from polynya.model.reading.kinds import Task

log = logging.getLogger(__name__)

#: What a table has copied, None for one that does not exist yet.
StateOf: TypeAlias = Callable[[ResolvedDataset], CopyState | None]

#: The formats that read landed batches of streams.
_READ_STREAMS: Final = frozenset({"stream", "debezium"})


@dataclass(frozen=True, slots=True)
class Reader:
    """A table, `schema.view`, and the number of the first landed batch that it has not copied."""

    name: str
    next_unread: int


def first_unread_of(readers: Sequence[Reader] | None) -> int | None:
    """The first landed batch that some table has not copied; None: there is none to wait for.

    Where nobody knows who reads, nothing counts as copied.
    """
    if readers is None:
        return 1
    return min((one.next_unread for one in readers), default=None)


def late_of(readers: Sequence[Reader] | None, number: int) -> tuple[str, ...]:
    """The tables that have not copied a landed batch; none where nobody knows them."""
    return tuple(one.name for one in readers or () if one.next_unread <= number)


class LandedReaders:
    """Looks the readers up. It knows none, and says so, before it was told the project's tasks."""

    def __init__(self, state_of: StateOf | None = None) -> None:
        self._state_of = state_of
        self._tasks: tuple[StorageTask, ...] | None = None
        self._landings: tuple[StreamingLanding, ...] = ()

    def know(self, tasks: Sequence[Task] | None) -> None:
        """These are all tasks of the project now; None: nobody knows all of them."""
        found = None if tasks is None else (one for one in tasks if isinstance(one, StorageTask))
        self._tasks = None if found is None else tuple(found)
        self._landings = tuple(one for one in tasks or () if isinstance(one, StreamingLanding))

    def landing_of(self, folder: str) -> StreamingLanding | None:
        """What lands into a folder of landed batches; None: nothing of the project, or who knows.

        One with `direct: true` lands nothing.
        """
        parent = folder.rpartition("/")[0]
        return next((one for one in self._landings if one.place == parent and not one.direct), None)

    def of(self, folder: str) -> tuple[Reader, ...] | None:
        """The tables that read a folder; None where that cannot be told now."""
        tasks, look = self._tasks, self._state_of
        if tasks is None or look is None:
            return None
        try:
            return tuple(one for task in tasks for one in _readers(task, folder, look))
        except Exception as error:  # noqa: BLE001 - whatever keeps it from knowing
            log.debug("who reads %s cannot be told: %s", folder, error)
            return None


def state_in(spark: SparkSession) -> StateOf:
    """Reads the states of tables in the catalog of a session. Takes nothing over."""

    def state_of(dataset: ResolvedDataset) -> CopyState | None:
        if not spark.catalog.tableExists(internal_path(spark, dataset)):
            return None
        return DatasetTable.existing(spark, dataset).state.copy

    return state_of


def _readers(task: StorageTask, folder: str, look: StateOf) -> Iterator[Reader]:
    if task.landing.format not in _READ_STREAMS or isinstance(task, DirectTask):
        return
    if rules_of(task.landing.format).finds_tables:
        yield from _of_shared(task, folder, look)
        return
    for dataset in (resolved(task, one) for one in task.datasets):
        if _is_read(folder, dataset.landing.folder, dataset.landing.glob):
            yield _reader(dataset.relations.current, look(dataset), folder)


def _of_shared(task: StorageTask, folder: str, look: StateOf) -> Iterator[Reader]:
    """The position of the whole task, and of each table without which the files were read on.

    One that was refused is given a table later, which begins with the first batch that is left.
    """
    path = task.landing.path
    if folder != path and not folder.startswith(f"{path}/"):
        return
    ledger = look(ledger_dataset(task))
    yield _reader(f"the tables of {task.name}", ledger, folder)
    known = Membership() if ledger is None else ledger.membership
    yield from (Reader(source, 1) for source in known.refused)
    for dataset in named_datasets(task, known.members).values():
        state = look(dataset)
        if state is not None and state.position.behind:
            yield _reader(dataset.relations.current, state, folder)


def _is_read(folder: str, root: str, glob: str) -> bool:
    return bool(glob_pattern(glob).fullmatch(relative_to(root, f"{folder}/{batch_name(1)}")))


def _reader(name: str, state: CopyState | None, folder: str) -> Reader:
    files = {} if state is None else state.position.files
    return Reader(name, next_unread(files, folder))
