"""A warehouse on this machine that somebody removed while it was worked in."""

from __future__ import annotations

from pathlib import Path

from polynya.lake.warehouse.catalog_file import catalog_file, entries
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import (
    ConfigError,
    ConflictError,
    DependencyError,
    PolynyaError,
    SuspendedError,
    TaskStoppedError,
)

#: Errors that say themselves what is the matter.
_OF_THEIR_OWN = (ConfigError, ConflictError, SuspendedError, TaskStoppedError)


def cause_of(failure: PolynyaError, target: ResolvedTarget, catalog: str) -> PolynyaError:
    """Why a step failed in a warehouse that had tables: it is gone, or else what was said.

    Whoever writes into a folder that is gone makes it again, so that the catalog has to tell.
    """
    file, warehouse = catalog_file(target), target.warehouse
    if file is None or not isinstance(warehouse, Path) or isinstance(failure, _OF_THEIR_OWN):
        return failure
    try:
        if entries(file, catalog):
            return failure
    except PolynyaError as damaged:
        return damaged
    what = "is empty" if file.exists() else "is gone"
    found = DependencyError(
        "POLYNYA-DEP-017",
        f"the catalog {what}: somebody removed the warehouse, or a part of it, meanwhile",
        where=str(file),
        why=failure.message,
        state="nothing of this step was written; what was in the folder is gone with it",
        fix="end the run. If only the catalog is gone, `polynya doctor --repair` registers the "
        "tables again; else put the folder back from a backup, or begin anew with `polynya run`",
    )
    found.__cause__ = failure
    return found
