"""A file that a listing gave, and those that were read, remembered in 12 bytes each."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final

from polynya.model.documents.stored import Moment

#: Two of a million names share 8 bytes with a chance of 3 in 10⁸. Then the 4 bytes of their
#: versions differ all the same, and the second file is named as changed: none is passed over.
_NAME_BYTES: Final = 8
_ENTRY_BYTES: Final = 12


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of the source.

    Attributes:
        name: its path below the place of the source.
        size: in bytes, as it is stored.
        version: another one after each write.
        date: the moment at which the date in its name begins, None without one.
        written: when it was written, in seconds since 1970, None where nobody tells.
    """

    name: str
    size: int
    version: str
    date: Moment | None = None
    written: float | None = field(default=None, compare=False)

    @property
    def turn(self) -> tuple[datetime, str]:
        """Files are read in the order of their dates, then of their names."""
        return self.date or datetime.min.replace(tzinfo=UTC), self.name


@dataclass(frozen=True, slots=True)
class RememberedFiles:
    """Files that were read, by the moments of their dates."""

    marks: Mapping[datetime | None, Mapping[bytes, bytes]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.marks.values()))

    def has(self, file: FoundFile) -> bool:
        """Whether it was read in this version."""
        name, version = _mark(file)
        return self.marks.get(file.date, {}).get(name) == version

    def has_other(self, file: FoundFile) -> bool:
        """Whether it was read in another version."""
        name, version = _mark(file)
        return self.marks.get(file.date, {}).get(name, version) != version

    def adding(self, files: Iterable[FoundFile]) -> RememberedFiles:
        """These files too; a version replaces another one."""
        marks = {date: dict(entries) for date, entries in self.marks.items()}
        for file in files:
            name, version = _mark(file)
            marks.setdefault(file.date, {})[name] = version
        return RememberedFiles(marks)

    def since(self, moment: datetime | None) -> RememberedFiles:
        """Without those whose date is before a moment."""
        kept = {
            date: entries
            for date, entries in self.marks.items()
            if date is None or moment is None or date >= moment
        }
        return RememberedFiles(kept)

    def among(self, files: Iterable[FoundFile]) -> RememberedFiles:
        """Only those whose names are among these files, of files without a date."""
        names = {_mark(file)[0] for file in files}
        marks = self.marks.get(None, {})
        return RememberedFiles({None: {name: marks[name] for name in names if name in marks}})

    def to_json(self) -> dict[str, str]:
        """The marks of each moment as Base64."""
        return {
            date.isoformat() if date else "": b64encode(
                b"".join(name + version for name, version in sorted(entries.items()))
            ).decode()
            for date, entries in self.marks.items()
            if entries
        }

    @classmethod
    def from_json(cls, values: Mapping[str, str]) -> RememberedFiles:
        """What `to_json` wrote. Raises ValueError."""
        marks: dict[datetime | None, dict[bytes, bytes]] = {}
        for moment, text in values.items():
            packed = b64decode(text, validate=True)
            entries = (packed[at : at + _ENTRY_BYTES] for at in range(0, len(packed), _ENTRY_BYTES))
            date = datetime.fromisoformat(moment) if moment else None
            marks[date] = {entry[:_NAME_BYTES]: entry[_NAME_BYTES:] for entry in entries}
        return cls(marks)


def _mark(file: FoundFile) -> tuple[bytes, bytes]:
    version = f"{file.size} {file.version}"
    return (
        blake2b(file.name.encode("utf-8", "surrogatepass"), digest_size=_NAME_BYTES).digest(),
        blake2b(version.encode(), digest_size=_ENTRY_BYTES - _NAME_BYTES).digest(),
    )
