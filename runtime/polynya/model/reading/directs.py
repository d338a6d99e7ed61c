"""Who reads the landings with `direct: true`: one transform for each of their tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from polynya.model.config.streaming.direct import DirectTask
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.config.task import StorageTask
from polynya.model.contract.identifiers import shown
from polynya.model.documents.problems import Problem
from polynya.model.reading.kinds import Task


def unread_problem(task: StreamingLanding, tasks: Sequence[Task]) -> Iterator[Problem]:
    """Yield why nothing would be read of a direct landing. `tasks` are those of all files."""
    if not any(isinstance(one, DirectTask) and one.reads.name == task.name for one in tasks):
        yield Problem(
            ("direct",),
            "POLYNYA-STR-061",
            f"nothing is landed by {shown(task.name)}, and no `streaming_transform` reads it",
            f"write one with `from: {task.name}`, or take `direct` out",
        )


def reader_problems(task: StorageTask, places: Mapping[str, str]) -> Iterator[Problem]:
    """Yield why a task cannot read files of a folder. `places` are those of direct landings."""
    landing = task.landing
    if landing.format == "stream" and landing.path in places and not isinstance(task, DirectTask):
        yield Problem(
            ("landing", "path"),
            "POLYNYA-STR-062",
            f"the task {shown(places[landing.path])} has `direct: true`, so nothing is landed "
            f"in {shown(landing.path)}",
            "make this task a `streaming_transform`, or take `direct` out of the other",
        )


def sharing_problems(
    task: StorageTask, file: str, readers: dict[tuple[str, str], str]
) -> Iterator[Problem]:
    """Yield that another transform reads the same table of a direct landing.

    `readers` are those so far, by landing and table, with their files; this one is added.
    """
    if not isinstance(task, DirectTask):
        return
    place = (task.reads.name, task.reads_table)
    other = readers.setdefault(place, file)
    if other != file:
        yield Problem(
            ("from",),
            "POLYNYA-STR-063",
            f"the transform in {other} reads {shown(task.reads_table)} of {shown(task.reads.name)} "
            "already, and `direct: true` keeps nothing for a second one",
            "take `direct` out: what has landed is read by any number of transforms",
        )
