"""The position of a source of files: what is done by date, plus the names that dates do not cover.

Everything dated before `since` is done, and within the unit that starts at `since` the names up to
`passed`. For later dates `known` lists the files that were read. `since` trails by the look-back,
so that `known` holds only names of that period.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from polynya.streams.files.files import FoundFile, KnownFiles
from polynya.streams.source import Described


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
    byte: int = 0
    initial: bool = False


@dataclass(frozen=True, slots=True)
class FilesPosition:
    """What of a source was read.

    Attributes:
        since: everything dated before is done; None: nothing is, or the files have no dates.
        passed: of the unit at `since`, the names up to this one are done.
        known: files that were read of what follows.
        initial: the name up to which the initial load was read; None: it is over.
        cut: the file that is being read.
        taken: files that the batch before this position took in whole and that are to be deleted.
        left: files that were known and not read when it was written, one that is cut among them.
        oldest: when the oldest of them was written, in seconds since 1970, if that is known.
    """

    since: datetime | None = None
    passed: str = ""
    known: KnownFiles = field(default_factory=KnownFiles)
    initial: str | None = None
    cut: CutFile | None = None
    taken: tuple[FoundFile, ...] = ()
    left: int | None = None
    oldest: float | None = None

    def is_done(self, file: FoundFile) -> bool:
        """Whether the date and the name of a file say that it was read, or that it is too late."""
        if file.date is None or self.since is None:
            return False
        return file.date < self.since or (file.date == self.since and file.name <= self.passed)

    def to_json(self) -> dict[str, Any]:
        """As a footer holds it."""
        values: dict[str, Any] = {"known": self.known.to_json()}
        if self.since is not None:
            values["since"] = self.since.isoformat()
        if self.passed:
            values["passed"] = self.passed
        if self.initial is not None:
            values["initial"] = self.initial
        if self.cut is not None:
            values["cut"] = {
                **_written(self.cut.file),
                "record": self.cut.record,
                "byte": self.cut.byte,
                "initial": self.cut.initial,
            }
        if self.taken:
            values["taken"] = [_written(one) for one in self.taken]
        told = {"left": self.left, "oldest": self.oldest}
        return values | {name: value for name, value in told.items() if value is not None}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> FilesPosition:
        """What `to_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        cut = values.get("cut")
        return cls(
            since=_moment(values.get("since")),
            passed=str(values.get("passed", "")),
            known=KnownFiles.from_json(values["known"]),
            initial=values.get("initial"),
            cut=cut
            and CutFile(_read(cut), int(cut["record"]), int(cut["byte"]), bool(cut["initial"])),
            taken=tuple(_read(one) for one in values.get("taken", ())),
            left=values.get("left"),
            oldest=values.get("oldest"),
        )


def described(position: Mapping[str, Any]) -> Described:
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
    return Described(places, found.left, oldest)


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
        last = max(read, key=lambda one: one.turn, default=None)
        if not over and last is not None and last.date is not None and last.date < horizon:
            since, passed = last.date, last.name
        elif (over or last is not None) and (since is None or horizon > since):
            since, passed = horizon, ""
    moved = replace(position, since=since, passed=passed)
    known = position.known.adding(one for one in read if not moved.is_done(one))
    return replace(moved, known=known.since(since))


def _written(file: FoundFile) -> dict[str, Any]:
    values: dict[str, Any] = {"name": file.name, "size": file.size, "version": file.version}
    if file.date is not None:
        values["date"] = file.date.isoformat()
    if file.written is not None:
        values["written"] = file.written
    return values


def _read(values: Mapping[str, Any]) -> FoundFile:
    return FoundFile(
        str(values["name"]),
        int(values["size"]),
        str(values["version"]),
        _moment(values.get("date")),
        values.get("written"),
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
