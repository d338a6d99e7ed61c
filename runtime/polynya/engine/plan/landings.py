"""Landings of a project that have landed nothing yet."""

from __future__ import annotations

from polynya.model.reading.loader import LoadedProject
from polynya.store.object_store import ObjectStore
from polynya.store.places import store_at


def new_landings(project: LoadedProject) -> tuple[str, ...]:
    """Their names, in the order of the files."""
    if not project.landings and not project.captures:
        return ()
    # Start-up time: PyArrow.
    from polynya.streaming.landing.log import landed_tables

    store = store_at(project.target.landing, project.target.aws)
    new = [task.name for task in project.landings if not landed_tables(store, task.place)]
    new += [task.name for task in project.captures if not _has_landed(store, task.place)]
    return tuple(new)


def _has_landed(store: ObjectStore, folder: str) -> bool:
    """Whether a capture has put a batch."""
    return any(True for _ in store.beginning(f"{folder}/capture-"))
