"""The state of a captured table as operators see it, from its queue position to its live view."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import TableProgress
from polynya.engine.ledger import ledger_dataset
from polynya.lake.read import inspect
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.lake.warehouse.readers import reading
from polynya.lake.warehouse.tables import Tables
from polynya.model.config.capture import CaptureLanding
from polynya.model.config.task import StorageTask
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject

CapturedTableState: TypeAlias = Literal[
    "queued", "loading", "caching changes", "applying cached changes", "running", "loaded", "error"
]
#: As what a capture is that has tables in several: the first of these that one is in.
WORST_FIRST: Final[tuple[CapturedTableState, ...]] = (
    "error", "queued", "loading", "caching changes", "applying cached changes", "running", "loaded"
)  # fmt: skip


def readers_of(project: LoadedProject, capture: CaptureLanding) -> list[StorageTask]:
    """The storage tasks that make tables of what a capture lands."""
    return [
        task
        for task in project.tasks
        if task.landing.format == "debezium" and task.landing.path.strip("/") == capture.place
    ]


def captured_table_state(
    progress: TableProgress, capture: CaptureLanding, copied: int | None
) -> CapturedTableState:
    """The state of a table.

    Args:
        progress: how far it is loaded.
        capture: its task.
        copied: number of the batch up to which all landed ones are in the tables; None: nobody
            makes tables of them, or nobody knows.
    """
    match progress.state:
        case "suspended":
            return "error"
        case "queued":
            return "queued"
        case "loading":
            return "caching changes" if progress.changes else "loading"
    if copied is not None and progress.ended is not None and copied < progress.ended:
        return "applying cached changes"
    return "running" if capture.update_method == "cdc" else "loaded"


def copied_batches(project: LoadedProject, capture: CaptureLanding, log: CaptureLog) -> int | None:
    """Number of the batch up to which every landed one is in the tables; None: unknown."""
    readers = readers_of(project, capture)
    if not readers:
        return None
    try:
        with reading(project):
            if not has_tables(project.target):
                return 0
            catalog = python_catalog(project.target)
            return min(_copied(catalog, task, log) for task in readers)
    except PolynyaError:
        # A capture near its database may be unable to reach the tables.
        return None


def _copied(catalog: Tables, task: StorageTask, log: CaptureLog) -> int:
    table = inspect.load(catalog, ledger_dataset(task))
    if table is None:
        return 0
    files = inspect.states(table)[0].position.files
    # Batches that expired were copied, or are lost in any case.
    copied = 0
    for number in log.numbers():
        path = log.path(number)
        if path not in files or not files[path].complete:
            return copied or number - 1
        copied = number
    return copied
