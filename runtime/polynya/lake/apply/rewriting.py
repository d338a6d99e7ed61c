"""Whether a data file that loses rows is written again without them, decided with the reason.

A position delete costs the same whatever the size of its file, but every reader pays for it, and
for the dead rows, until the file is written again. So a file is written again when what it holds
is dead to a good part: then each changed row has caused a few rows to be written, whatever the size
of the table (docs/adr/0016-deleted-rows.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polynya.lake.iceberg.files import DataFile

MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Rewriting:
    """When data files are written again.

    share: deleted part of a file's rows from which on it is.
    budget_bytes: of the rows that stay, in the size that they have now: what one step may write
        again. So a large file waits until more of it is deleted.
    together_bytes: rows that stay of several files become one file of up to this size.
    """

    share: float = 0.3
    budget_bytes: int = 64 * MEBIBYTE
    together_bytes: int = 16 * MEBIBYTE


REWRITING = Rewriting()


@dataclass(frozen=True, slots=True)
class Losing:
    """A live data file, and how many of its rows are deleted when the step is made."""

    file: DataFile
    dead: int

    @property
    def share(self) -> float:
        """The deleted part of its rows."""
        return self.dead / self.file.rows

    @property
    def staying_bytes(self) -> int:
        """Size of the rows that stay: what it costs to write it again."""
        return self.file.size_bytes * (self.file.rows - self.dead) // self.file.rows

    @property
    def gained_bytes(self) -> int:
        """Size of the rows that readers no longer skip."""
        return self.file.size_bytes - self.staying_bytes


@dataclass(frozen=True, slots=True)
class Choice:
    """What happens to a file that loses rows: `again` says that it is written again."""

    losing: Losing
    again: bool
    reason: str


def choose(files: Iterable[Losing], rewriting: Rewriting) -> list[Choice]:
    """Decide for each file that has deleted rows; those that gain most come first."""
    left = rewriting.budget_bytes
    found: list[Choice] = []
    for one in sorted(files, key=lambda one: (-one.gained_bytes, one.file.path)):
        deleted = f"{one.dead:,} of {one.file.rows:,} rows are deleted"
        if one.share < rewriting.share:
            found.append(Choice(one, again=False, reason=f"only {deleted}"))
        elif one.staying_bytes > left:
            waits = f"{one.staying_bytes:,} bytes stay, {left:,} may be written in this step"
            found.append(Choice(one, again=False, reason=f"{deleted}, but {waits}"))
        else:
            left -= one.staying_bytes
            found.append(Choice(one, again=True, reason=deleted))
    return found


def together(files: Sequence[Losing], rewriting: Rewriting) -> list[list[Losing]]:
    """Which files become one: the smallest with each other, in one partition of Iceberg."""
    found: list[list[Losing]] = []
    size = 0
    for one in sorted(files, key=lambda one: (*_place(one), one.staying_bytes)):
        size += one.staying_bytes
        same = bool(found) and _place(found[-1][0]) == _place(one)
        if same and size <= rewriting.together_bytes:
            found[-1].append(one)
        else:
            found.append([one])
            size = one.staying_bytes
    return found


def _place(losing: Losing) -> tuple[str, int, str]:
    slot = losing.file.slot
    return slot.partition, slot.spec or 0, slot.values or ""
