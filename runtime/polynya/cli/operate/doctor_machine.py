"""`polynya doctor` on this machine: folders, catalog, memory, the encoding of what is printed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from polynya.cli.operate.checks import Check, guarded
from polynya.model.config.streaming.direct import DirectTask
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import PolynyaError
from polynya.model.reading.loader import LoadedProject

#: Below so many free bytes a run soon ends in an error.
_LITTLE_ROOM: Final = 512 * 2**20


def machine_checks(project: LoadedProject) -> Iterator[Check]:
    """Everything of a project that is on this machine."""
    landing, warehouse = project.target.landing, project.target.warehouse
    if isinstance(landing, Path):
        yield _landing(landing, makes=bool(project.captures))
        for task in project.tasks:
            if isinstance(task, DirectTask):
                continue
            yield _task_folder(task.name, landing / task.landing.path)
    if isinstance(warehouse, Path):
        yield guarded("warehouse", lambda: _warehouse(warehouse))
    if not project.target.on_glue:
        yield guarded("catalog", lambda: _catalog(project.target))


def memory_check() -> Check:
    """The heap that a run would start with."""
    # The lake room is imported where it is needed only: start-up time.
    from polynya.lake.spark.heap import MEMORY_VARIABLE, asked_heap, driver_heap, machine_memory

    machine, asked = machine_memory(), os.environ.get(MEMORY_VARIABLE)
    heap = asked_heap(asked, machine) if asked else driver_heap(machine, dedicated=False)
    origin = f" by {MEMORY_VARIABLE}" if asked else ""
    return Check("memory", "ok", f"heap of {heap} MiB{origin}, the machine has {machine} MiB")


def output_check() -> Check:
    """Whether every character can be printed."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        "\u03b1\u20ac\u6f22".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return Check(
            "output",
            "warn",
            f"{encoding} cannot print every character",
            "PYTHONIOENCODING=utf-8, or a locale with UTF-8 such as LANG=C.UTF-8",
        )
    return Check("output", "ok", encoding)


def _landing(folder: Path, *, makes: bool) -> Check:
    if not folder.is_dir() and makes:
        return Check("landing", "ok", f"{folder} (will be created)")
    if not folder.is_dir():
        return Check("landing", "fail", f"no folder {folder}", f"mkdir -p {folder}")
    if not os.access(folder, os.R_OK | os.X_OK):
        return Check("landing", "fail", f"{folder} is not readable", f"chmod u+rx {folder}")
    return Check("landing", "ok", str(folder))


def _task_folder(task: str, folder: Path) -> Check:
    name = f"landing of {task}"
    if not folder.is_dir():
        return Check(name, "warn", f"no folder {folder} yet", "files that land there are found")
    return Check(name, "ok", str(folder))


def _warehouse(folder: Path) -> Check:
    from polynya.lake.warehouse.folder import refuse_unwritable

    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        refuse_unwritable(existing)
    except PolynyaError as error:
        fix = "choose another warehouse in polynya.yml, or fix the permissions"
        detail = f"cannot write to {existing}: {error.why}"
        return Check("warehouse", "fail", detail, error.fix or fix, error.exit_code)
    free = shutil.disk_usage(existing).free
    room = f"{free / 2**30:.1f} GiB free"
    if free < _LITTLE_ROOM:
        return Check("warehouse", "warn", f"{folder}: {room}", "make room on the disk")
    made = "" if existing == folder else " (will be created)"
    return Check("warehouse", "ok", f"{folder}{made}, {room}")


def _catalog(target: ResolvedTarget) -> Check:
    from polynya.lake.spark.naming import CATALOG
    from polynya.lake.warehouse.catalog_file import catalog_file
    from polynya.lake.warehouse.check import entries_of, refuse_incomplete, refuse_unusable

    file, database = catalog_file(target), target.database
    place = str(file) if database is None else f"PostgreSQL at {database.text}"
    refuse_unusable(target, CATALOG)
    refuse_incomplete(target, CATALOG)
    tables = [one for one in entries_of(target, CATALOG) if not one.is_view]
    if not tables:
        return Check("catalog", "ok", f"{place}: no tables yet")
    if file is not None and not os.access(file, os.W_OK):
        return Check("catalog", "fail", f"{file} cannot be written", f"chmod u+w {file}")
    return Check("catalog", "ok", f"{place}: tables: {len(tables)}, all in the warehouse")
