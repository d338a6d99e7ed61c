"""What a format says of itself to be loaded by tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, TypeAlias

from polynya.formats.loads import Split
from polynya.formats.native.columnar.chunks import Chunk
from polynya.formats.records.opened import RawRecord
from polynya.formats.values.columns import Builder, build
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.datatypes import DataType


@dataclass(frozen=True, slots=True)
class Piece:
    """Records that stand together: how many, of how many bytes, and where they begin."""

    begin: int
    records: int
    size: int


@dataclass(frozen=True, slots=True)
class Opened:
    """Pieces of a file, to its end, and the types that it declares."""

    pieces: Iterator[Piece]
    types: Mapping[str, DataType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What records are read for: a dataset, and the columns that are assumed."""

    dataset: ResolvedDataset
    schema: Mapping[str, DataType]


def _no_columns(first: int) -> Chunk | None:
    del first
    return None


@dataclass(frozen=True, slots=True)
class Portion:
    """Some records of a split, in their order.

    Attributes:
        count: how many there are.
        records: each of them, for the exact reader.
        chunk: all of them as columns, given the index in the file of the first; None when a value
            must be looked at.
    """

    count: int
    records: Callable[[], Iterator[RawRecord]]
    chunk: Callable[[int], Chunk | None] = _no_columns


#: (content, dataset, most bytes of a piece of text, where the first piece begins) → pieces. Raises
#: UnreadableFileError.
Opener: TypeAlias = Callable[[BinaryIO, ResolvedDataset, int, int], Opened]
#: (content, split, what is wanted) → portions. Raises UnreadableFileError.
Reader: TypeAlias = Callable[[BinaryIO, Split, Wanted], Iterator[Portion]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A format.

    Attributes:
        pieces: where a file may be cut.
        portions: the records of a split.
        damage: what a portion raises when its file is damaged.
        builder: types columns.
        declares_types: whether files say what their columns are; else the values do.
        is_read_whole: whether a compressed file is read by one task, uncut.
    """

    pieces: Opener
    portions: Reader
    damage: tuple[type[Exception], ...] = ()
    builder: Builder = build
    declares_types: bool = True
    is_read_whole: bool = False
