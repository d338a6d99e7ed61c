"""Full extracts in the landing zone: which one is next, which came too late, which are refused.

An extract is one file, or all files of a folder. Extracts are applied in the order of the times in
their names, or else of the names, and never out of order: an extract that is compared with a later
state of the table would undo newer changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart, FileProgress
from polynya.formats.files import ChangedFile, matching, relative_to, unread
from polynya.formats.values.arrow import all_rejected
from polynya.formats.values.buffer import RecordBuffer
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import Extracts
from polynya.model.patterns import time_in_name
from polynya.store.object_store import ObjectInfo


@dataclass(frozen=True, slots=True)
class Extract:
    """One full extract: its name below the landing path, its time if the name holds one."""

    name: str
    time: datetime | None
    files: tuple[ObjectInfo, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file that is no part of an extract that can be applied, and why."""

    file: ObjectInfo
    rule: str
    error: str


@dataclass(frozen=True, slots=True)
class LandedExtracts:
    """What has landed for one dataset.

    Attributes:
        due: extracts to apply, in order.
        waiting: folders whose marker has not landed.
        refused: unread files that no extract will hold.
        changed: files that changed after they were applied.
    """

    due: tuple[Extract, ...] = ()
    waiting: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    changed: tuple[ChangedFile, ...] = ()


@dataclass(slots=True)
class _Sorted:
    extracts: dict[str, list[ObjectInfo]] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)


def landed_extracts(
    landed: Iterable[ObjectInfo],
    dataset: ResolvedDataset,
    settings: Extracts,
    done: Mapping[str, FileProgress],
    last: str | None,
) -> LandedExtracts:
    """Sort the files below a dataset's landing path.

    `done` is what was read of each file, `last` the name of the extract that was applied last.
    """
    everything = list(landed)
    paths = {relative_to(dataset.landing.folder, info.path) for info in everything}
    found = _sorted_out(everything, dataset, settings)
    applied_to = None if last is None else _place(last, settings)
    due, waiting, late = [], [], []
    for name in sorted(found.extracts, key=lambda name: _place(name, settings)):
        files = found.extracts[name]
        if applied_to is not None and _place(name, settings) <= applied_to:
            late += [_late(info, str(last)) for info in files if info.path not in done]
        elif settings.each == "folder" and f"{name}/{settings.marker}" not in paths:
            waiting.append(name)
        else:
            due.append(Extract(name, _time(name, settings), tuple(files)))
    refused = [part for part in found.refused if part.file.path not in done]
    seen = [info for files in found.extracts.values() for info in files if info.path in done]
    return LandedExtracts(tuple(due), tuple(waiting), (*refused, *late), unread(seen, done).changed)


def refused_batch(refused: Iterable[Refusal], nothing: DatasetBatch) -> DatasetBatch:
    """The batch of files that go to quarantine whole; `nothing` is what reading no file gives."""
    buffer = RecordBuffer(BatchLimits())
    for one in refused:
        buffer.refuse_file(FilePart.of(one.file), one.error, rule=one.rule)
    return replace(
        nothing,
        rejected=all_rejected(buffer, {}),
        rows_in=len(buffer.rejected),
        files=dict(buffer.progress),
    )


def _sorted_out(
    landed: Iterable[ObjectInfo], dataset: ResolvedDataset, settings: Extracts
) -> _Sorted:
    found = _Sorted()
    for info in matching(landed, dataset.landing.folder, dataset.landing.glob):
        path = relative_to(dataset.landing.folder, info.path)
        name = path if settings.each == "file" else path.rpartition("/")[0]
        if not name:
            error = "it is in no folder, and each folder is an extract"
            found.refused.append(Refusal(info, "no_extract", error))
        elif settings.time_in_name is not None and _time(name, settings) is None:
            error = f"its name holds no time in the form of {settings.time_in_name!r}"
            found.refused.append(Refusal(info, "no_extract", error))
        elif path.rpartition("/")[2] != settings.marker or settings.each == "file":
            found.extracts.setdefault(name, []).append(info)
    return found


def _late(info: ObjectInfo, last: str) -> Refusal:
    error = f"the extract {last}, which is later, was applied before this file was there"
    return Refusal(info, "late_extract", error)


def _time(name: str, settings: Extracts) -> datetime | None:
    pattern = settings.time_in_name
    return None if pattern is None else time_in_name(name, pattern)


def _place(name: str, settings: Extracts) -> tuple[str, str]:
    """Sort key of an extract's name."""
    time = _time(name, settings)
    return ("" if time is None else time.isoformat(timespec="microseconds"), name)
