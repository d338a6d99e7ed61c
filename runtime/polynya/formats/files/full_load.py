"""Where a full load lies that a table is to be reloaded from."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from polynya.formats.files.discovery import glob_pattern, relative_to
from polynya.formats.files.folders import TableOf, sorted_out
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.errors import OperationError
from polynya.store.object_store import ObjectInfo


def nothing_to_reload(
    dataset: ResolvedDataset,
    why: str,
    *,
    fix: str = "land the new full load where `initial_load` says, or name its files with `--files`",
) -> OperationError:
    """The error of a reload that has no files."""
    return OperationError(
        "POLYNYA-LAKE-014",
        f"there is nothing to reload {dataset.relations.current} from: {why}",
        where=f"task {dataset.task}",
        state="nothing was changed",
        fix=fix,
    )


def full_load_of(
    landed: Iterable[ObjectInfo],
    dataset: ResolvedDataset,
    glob: str | None,
    *,
    table_of: TableOf,
    is_load: Callable[[str], bool],
) -> tuple[ObjectInfo, ...]:
    """The files of a full load of one table that are in its folder, and that a glob names."""
    root = dataset.landing.folder
    own = sorted_out(landed, root, table_of, lambda one: one == dataset.landing.source)
    pattern = glob_pattern(glob or "**")
    return tuple(
        info
        for info in own.tables.get(dataset.landing.source or "", ())
        if is_load(info.path) and pattern.fullmatch(relative_to(root, info.path))
    )
