"""The position of a source of files: what is done by date, plus the names that dates do not cover.

Everything dated before `since` is done, and within the unit that starts at `since` the names up to
`passed`. For later dates `known` lists the files that were read. `since` trails by the look-back,
so that `known` holds only names of that period.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import (
    BeforeValidator,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    WrapSerializer,
)

from polynya.model.documents.stored import Items, Moment, from_stored
from polynya.streams.files.files import FoundFile, RememberedFiles
from polynya.streams.source import PositionSummary


@dataclass(frozen=True, slots=True)
class CutFile:
    """A file of which a part was read.

    Attributes:
        file: in the version of which it was read.
        record: number of the first record that was not.
        byte: where that begins in the content, decompressed; 0 when the file has to tell.
        initial: whether it belongs to the initial load.
    """

    file: FoundFile
    record: int
    byte: int
    initial: bool


def _flat(cut: CutFile, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
    values = write(cut)
    return {**values.pop("file"), **values}


#: Footers hold the values of the file and those of the cut side by side.
_Cut = Annotated[
    CutFile, BeforeValidator(lambda values: {**values, "file": values}), WrapSerializer(_flat)
]
_Known = Annotated[
    RememberedFiles,
    PlainSerializer(RememberedFiles.to_json),
    PlainValidator(RememberedFiles.from_json),
]


@dataclass(frozen=True, slots=True)
class FilesPosition:
    """What of a source was read.

    Attributes:
        known: files that were read of what `since` and `passed` do not cover.
        since: everything dated before is done; None: nothing is, or the files have no dates.
        passed: of the unit at `since`, the names up to this one are done.
        initial: the name up to which the initial load was read; None: it is over.
        cut: the file that is being read.
        taken: files that the batch before this position took in whole and that are to be deleted.
        left: files that were known and not read when it was written, one that is cut among them.
        oldest: when the oldest of them was written, in seconds since 1970, if that is known.
    """

    known: _Known
    since: Moment | None = None
    passed: str = ""
    initial: str | None = None
    cut: _Cut | None = None
    taken: Items[FoundFile] = ()
    left: int | None = None
    oldest: float | None = None

    def is_done(self, file: FoundFile) -> bool:
        """Whether the date and the name of a file say that it was read, or that it is too late."""
        if file.date is None or self.since is None:
            return False
        return file.date < self.since or (file.date == self.since and file.name <= self.passed)

    def to_json(self) -> dict[str, Any]:
        """The object in the footer of a landed batch."""
        values: dict[str, Any] = _STORED.dump_python(self, mode="json", exclude_defaults=True)
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> FilesPosition:
        """Read what `to_json` wrote. Raises ValueError or TypeError for anything else."""
        return from_stored(_STORED, values)


_STORED: Final = TypeAdapter(FilesPosition)


def described(position: Mapping[str, Any]) -> PositionSummary:
    """What a position of a source of files says of itself."""
    found = FilesPosition.from_json(position)
    places = {}
    if found.since is not None:
        places["all before"] = found.since.isoformat()
    if found.passed:
        places["up to"] = found.passed
    if found.initial is not None:
        places["initial load up to"] = found.initial
    if found.cut is not None:
        places[found.cut.file.name] = f"record {found.cut.record}"
    places["files since then"] = str(len(found.known))
    oldest = None if found.oldest is None else datetime.fromtimestamp(found.oldest, UTC)
    return PositionSummary(places, found.left, oldest)


def after_initial(
    position: FilesPosition, read: Sequence[FoundFile], *, over: bool
) -> FilesPosition:
    """The position after files of the initial load; `over`: there is no other one."""
    last = read[-1].name if read else position.initial
    return replace(position, initial=None if over else last)


def after_files(
    position: FilesPosition, read: Sequence[FoundFile], *, horizon: datetime | None, over: bool
) -> FilesPosition:
    """The position after files with dates, or of a source whose files have none.

    Args:
        position: before them.
        read: the next ones in their order, each read to its end.
        horizon: the first moment that is looked back to; files before it come once. None: the files
            have no dates.
        over: there is no other file for now.
    """
    since, passed = position.since, position.passed
    if horizon is not None:
        # A file that was cut goes on first, also before one that came late.
        last = max(read, key=lambda file: file.turn, default=None)
        if not over and last is not None and last.date is not None and last.date < horizon:
            since, passed = last.date, last.name
        elif (over or last is not None) and (since is None or horizon > since):
            since, passed = horizon, ""
    moved = replace(position, since=since, passed=passed)
    known = position.known.adding(file for file in read if not moved.is_done(file))
    return replace(moved, known=known.since(since))
