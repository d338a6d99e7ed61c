"""Which files are a native dataset's: those that the globs of its settings name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from polynya.formats.batch import FileProgress
from polynya.formats.files.discovery import Discovery, glob_pattern, matching, relative_to, unread
from polynya.formats.files.full_load import nothing_to_reload
from polynya.model.config.dataset import ResolvedDataset
from polynya.store.object_store import ObjectInfo


def unread_of(
    landed: Iterable[ObjectInfo], done: Mapping[str, FileProgress], dataset: ResolvedDataset
) -> Discovery:
    """What is to be read next of a dataset: all of its first full load, then its events."""
    everything, root = (
        landed if isinstance(landed, Sequence) else list(landed),
        dataset.landing.folder,
    )
    events = unread(matching(everything, root, dataset.landing.glob, done=done), done)
    if dataset.landing.initial_load is None:
        return events
    loads = unread(matching(everything, root, dataset.landing.initial_load, done=done), done)
    if loads.files:
        return replace(loads, load=True)
    changed = [file for file in loads.changed if file not in events.changed]
    return replace(events, changed=(*changed, *events.changed))


def is_load(file: str, dataset: ResolvedDataset) -> bool:
    """Whether the settings name a file as one of the first full load."""
    if dataset.landing.initial_load is None:
        return False
    path = relative_to(dataset.landing.folder, file)
    return glob_pattern(dataset.landing.initial_load).fullmatch(path) is not None


def full_load(
    landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
) -> tuple[ObjectInfo, ...]:
    """The files of `initial_load`, or of another glob. Raises OperationError without either."""
    wanted = glob or dataset.landing.initial_load
    if wanted is None:
        raise nothing_to_reload(dataset, "no `initial_load`")
    return tuple(matching(landed, dataset.landing.folder, wanted))
