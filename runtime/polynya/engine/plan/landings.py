"""Landings of a project that have landed nothing yet."""

from __future__ import annotations

from polynya.model.reading.loader import LoadedProject
from polynya.store.places import store_at


def new_landings(project: LoadedProject) -> tuple[str, ...]:
    """Their names, in the order of the files."""
    if not project.landings:
        return ()
    # Start-up time: PyArrow.
    from polynya.streaming.landing.log import landed_tables

    store = store_at(project.target.landing, project.target.aws)
    return tuple(task.name for task in project.landings if not landed_tables(store, task.place))
