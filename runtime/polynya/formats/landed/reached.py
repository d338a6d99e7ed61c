"""How far a table has copied a folder of landed batches, by what its state says."""

from __future__ import annotations

from collections.abc import Mapping

from polynya.formats.batch import FileProgress
from polynya.formats.files.discovery import folder_of
from polynya.formats.landed.batch import batch_number
from polynya.model.contract.landed_position import Gone, Reached, Read, Span, gone


def before_copy(
    known: Reached | None, files: Mapping[str, FileProgress], folder: str
) -> Reached | None:
    """How far a table had copied a folder, None when it has nothing of it.

    `known` is what its state says of that, `files` how far its files were read: tables of older
    versions, and those that were loaded again, have only these.
    """
    inside = [path for path in files if folder_of(path) == folder]
    numbers = {batch_number(path) or 0: files[path] for path in inside}
    newest = max(numbers, default=0)
    if not newest:
        return None
    told = known if known is not None and known.folder == folder else None
    if told is not None and told.number == newest:
        return told
    return Reached(folder, newest, numbers[newest].complete)


def gone_between(
    done: Mapping[str, FileProgress], read: Mapping[str, FileProgress]
) -> dict[str, tuple[Gone, ...]]:
    """The landed batches that were gone before a task copied them, by folder.

    For tasks whose tables share their files, which may have several folders. `done` is how far they
    were read before `read`, which is in the order of names.
    """
    spans: dict[str, list[Read]] = {}
    for path, progress in read.items():
        number = batch_number(path)
        if number is not None:
            spans.setdefault(folder_of(path), []).append(Read(number, progress.complete))
    found = {
        folder: gone(before_copy(None, done, folder), Span(folder, tuple(parts)))
        for folder, parts in spans.items()
    }
    return {folder: missing for folder, missing in found.items() if missing}


def next_unread(files: Mapping[str, FileProgress], folder: str) -> int:
    """The number of the first landed batch of a folder that was not copied to its end."""
    newest = before_copy(None, files, folder)
    if newest is None:
        return 1
    return newest.number + 1 if newest.whole else newest.number
