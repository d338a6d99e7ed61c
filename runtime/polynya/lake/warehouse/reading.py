"""What reads the tables of a project keeps what it reads, for as long as it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from polynya.lake.warehouse.readers import Readers, reads_the_past
from polynya.model.config.maintenance.settings import SnapshotExpiry
from polynya.model.reading.loader import LoadedProject
from polynya.store.clock import SystemClock


@contextmanager
def reading(project: LoadedProject, statements: str = "") -> Iterator[None]:
    """Read tables inside: no expiry of ours takes away meanwhile what is read there.

    `statements` is the SQL that is answered, "" for what reads the newest snapshots only.
    """
    readers = Readers.of(project.target, SystemClock())
    with readers.reading(shortest=shortest_expiry(project), past=reads_the_past(statements)):
        yield


def shortest_expiry(project: LoadedProject) -> timedelta:
    """The least time for which a table of the project keeps its snapshots."""
    settings = [dataset.maintenance for dataset in project.datasets()]
    settings += [task.defaults.maintenance for task in project.tasks if task.defaults.maintenance]
    return min([SnapshotExpiry().age, *(one.snapshot_expiry.age for one in settings)])
