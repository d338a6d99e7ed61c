"""Which objects of the landing bucket are for the tasks of a cluster: what may wake it.

The leader writes the object `landing` when that changes. The function that wakes an empty cluster
reads it (`functions/wake/own_landing.py` of the constructs), so that several clusters can share a
landing bucket without waking each other. An edit of the configuration wakes a cluster by itself,
and the leader of the woken cluster then writes the new prefixes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from polynya.cluster.coordination.documents import Document, Name, Text
from polynya.engine.listing import outermost
from polynya.formats.files import start_of
from polynya.model.config.derived import DerivedTask
from polynya.model.config.mirror import ConnectedMirror
from polynya.model.config.stream_landing import DirectTask, StreamingLanding
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_kinds import Task
from polynya.model.formats import rules_of
from polynya.model.names import Location, S3Location, parse_location

#: Path of the document.
LANDING: Final = "landing"


class OwnLanding(Document):
    """`landing`: which objects are for the tasks of this cluster.

    Attributes:
        bucket: the one in which changes land.
        prefixes: how the keys of its objects begin; an empty one: all of them.
    """

    bucket: Name
    prefixes: tuple[Text, ...] = ()


def own_landing(landing: Location, tasks: Iterable[Task]) -> OwnLanding | None:
    """The prefixes of what these tasks read or land; None where nothing lands in a bucket.

    A dataset that names its files has the part of its path before the first wildcard, a task that
    finds its tables has its whole folder. What a stream or a capture of the cluster lands counts
    too: it shows that there is something to land, and requests to a capture lie there.
    """
    if not isinstance(landing, S3Location):
        return None
    starts = [start for task in tasks for start in _starts(task, landing)]
    return OwnLanding(bucket=landing.bucket, prefixes=outermost(starts))


def starts_within(landing: S3Location, starts: Iterable[str]) -> Iterator[str]:
    """Beginnings of keys as beginnings of paths in a landing location; of none outside it."""
    place = landing.key("")
    for start in starts:
        if start.startswith(place):
            yield start[len(place) :]
        elif place.startswith(start):
            yield ""


def _starts(task: Task, landing: S3Location) -> Iterator[str]:
    if isinstance(task, DerivedTask):
        return
    if isinstance(task, DirectTask):
        yield from _source(task.reads, landing)
    elif isinstance(task, StorageTask):
        for start in _read_by(task):
            yield landing.key(start)
    elif not isinstance(task, ConnectedMirror):
        yield landing.key(f"{task.place}/")
        if isinstance(task, StreamingLanding):
            yield from _source(task, landing)


def _read_by(task: StorageTask) -> Iterator[str]:
    """How the paths of the files begin that a task reads."""
    if rules_of(task.landing.format).finds_tables:
        yield start_of(task.landing.path, "")
        return
    for dataset in (resolved(task, declared) for declared in task.datasets):
        for glob in (dataset.landing.glob, dataset.landing.initial_load):
            if glob is not None:
                start = start_of(dataset.landing.folder, glob)
                # A folder is complete with its marker, which `path` need not name.
                yield start if dataset.landing.extracts is None else _folder(start)


def _source(task: StreamingLanding, landing: S3Location) -> Iterator[str]:
    """The folder of the files that a landing reads, if it is in the landing bucket."""
    if (files := task.source.files) is None:
        return
    place = parse_location(files.url, Path.cwd(), task.name)
    if isinstance(place, S3Location) and place.bucket == landing.bucket:
        yield f"{place.prefix}/" if place.prefix else ""


def _folder(path: str) -> str:
    return path[: path.rfind("/") + 1]
