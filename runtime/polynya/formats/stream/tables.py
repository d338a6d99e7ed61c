"""Which landed batches are a dataset's: those of the folder that its settings name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from polynya.formats.batch import FileProgress
from polynya.formats.files.discovery import Discovery, matching, start_of, unread
from polynya.formats.files.full_load import nothing_to_reload
from polynya.formats.landed.batch import batch_number
from polynya.model.config.dataset import ResolvedDataset
from polynya.store.object_store import ObjectInfo

_FIRST = 1


def unread_of(
    landed: Iterable[ObjectInfo], done: Mapping[str, FileProgress], dataset: ResolvedDataset
) -> Discovery:
    """What is to be read next of a dataset. A landed batch is whole when it is there.

    Batches before the newest that was read were read, too, and nobody looks at them again. If no
    batch is as new as that, the folder was emptied and begins anew.
    """
    folder = start_of(dataset.landing.folder, dataset.landing.glob)
    newest = max((path for path in done if path.startswith(folder)), default="")
    everything = landed if isinstance(landed, Sequence) else list(landed)
    batches = list(_batches(everything, dataset, dataset.landing.glob, since=newest))
    if newest and not batches:
        batches, done = list(_batches(everything, dataset, dataset.landing.glob)), {}
    return unread(batches, done, may_grow=False)


def full_load(
    landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
) -> tuple[ObjectInfo, ...]:
    """All landed batches, or those that a glob names.

    Raises OperationError POLYNYA-LAKE-014 when the first ones are gone: records of which only they
    tell would be deleted.
    """
    found = tuple(_batches(landed, dataset, glob or dataset.landing.glob))
    first = min((batch_number(info.path) or _FIRST for info in found), default=_FIRST)
    if glob is None and first != _FIRST:
        raise nothing_to_reload(
            dataset,
            f"its first landed batch is number {first}, those before it are gone",
            fix="`--mode compare_and_apply_without_deleted_rows` takes what is there and keeps the "
            f"other records; `--files '{dataset.landing.glob}'` takes it and deletes them",
        )
    return found


def _batches(
    landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str, *, since: str = ""
) -> Iterator[ObjectInfo]:
    """Landed batches from one on; what has another name is none of them."""
    for info in matching(landed, dataset.landing.folder, glob, since=since):
        if batch_number(info.path) is not None:
            yield info
