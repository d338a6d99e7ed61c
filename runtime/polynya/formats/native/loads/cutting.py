"""Where the splits of a file begin and end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from polynya.formats.batch import FilePart
from polynya.formats.loads import Place, Split
from polynya.formats.native.loads.kinds.kind import Piece


def splits_of(
    part: FilePart,
    pieces: Iterator[Piece],
    place: Place,
    *,
    number: int,
    split_bytes: int,
    most_bytes: int,
) -> tuple[list[Split], bool]:
    """Splits of a file from its record `part.start` on, and whether they reach its end.

    `number` is that of the first, `place` where the pieces begin. The splits end after the one with
    which `most_bytes` are reached.
    """
    cut = _Cut(part, number, records=place.records, before=place.before)
    for piece in pieces:
        if cut.held and cut.held_bytes + piece.size > split_bytes:
            cut.close(piece.begin)
            if sum(split.size for split in cut.splits) >= most_bytes:
                return cut.splits, False
        cut.take(piece)
    if cut.held:
        cut.close(None)
    return cut.splits, True


@dataclass(slots=True)
class _Cut:
    """The splits of a file so far, and the pieces of the next one."""

    part: FilePart
    number: int
    splits: list[Split] = field(default_factory=list)
    held: list[Piece] = field(default_factory=list)
    held_bytes: int = 0
    records: int = 0
    before: int = 0

    def take(self, piece: Piece) -> None:
        """Hold a piece, unless all of it was read before."""
        if not self.held and self.records + piece.records <= self.part.start:
            self.records += piece.records
            self.before += piece.size
            return
        self.held.append(piece)
        self.held_bytes += piece.size

    def close(self, end: int | None) -> None:
        """Make a split of what is held."""
        self.splits.append(
            Split(
                number=self.number + len(self.splits),
                file=self.part.path,
                first=self.records,
                skip=max(self.part.start - self.records, 0),
                before=self.before,
                size=self.held_bytes,
                begin=self.held[0].begin,
                end=end,
            )
        )
        self.records += sum(piece.records for piece in self.held)
        self.before += self.held_bytes
        self.held, self.held_bytes = [], 0
