"""Where the full load of a dataset lies, by the format of its task."""

from __future__ import annotations

from polynya.engine.tasks.gather import Load
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.landing import TaskLanding
from polynya.formats.files.discovery import unread
from polynya.formats.files.full_load import nothing_to_reload
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.formats.registry import rules_of


def load_of(working: WorkingDataset, landing: TaskLanding, glob: str | None) -> Load:
    """The full load of a dataset; `landing` is that of its task.

    `glob` names files below the landing path, by default those of `initial_load`, or whatever the
    service names as a full load of the table.

    Raises OperationError when nothing says where it lies.
    """
    dataset, named = working.table.dataset, landing.format.full_load
    in_order = rules_of(dataset.landing.format).in_order
    named((), dataset, glob)  # refused at once, and not when the files are looked for
    return Load(
        find=lambda done: unread(
            named(landing.files(), dataset, glob), done, may_grow=False, in_order=in_order
        ),
        read=lambda files: landing.read(working, files, load=True),
    )


def refuse_nothing(load: Load, dataset: ResolvedDataset, glob: str | None) -> None:
    """Raise OperationError for a load of which no file has landed."""
    if load.find({}).files:
        return
    named = glob or dataset.landing.initial_load
    why = f"no file matches `{named}`" if named else "no file of a full load has landed"
    raise nothing_to_reload(dataset, why)
