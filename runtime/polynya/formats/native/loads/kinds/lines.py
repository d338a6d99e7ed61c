"""JSON lines, and separated values, by their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import BinaryIO, Final

from polynya.formats.columnar.lines import blocks, count_records, records_of, without_mark
from polynya.formats.loads import Split
from polynya.formats.native.columnar.chunks import chunk_of_lines
from polynya.formats.native.loads.kinds.kind import Kind, Opened, Piece, Portion, Wanted
from polynya.formats.native.loads.kinds.part import part_of
from polynya.formats.records.delimited import Layout, open_csv, text_builder
from polynya.formats.records.json_lines import parsed
from polynya.formats.records.opened import RawRecord
from polynya.formats.records.separated import column_names, placed_pieces
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.datatypes import DataType, Void

_PIECE_BYTES = 8 * 1024 * 1024
_BLOCK_BYTES = 4 * 1024 * 1024
_ROWS = 16_384


def _json_pieces(file: BinaryIO, dataset: ResolvedDataset, size: int, begin: int) -> Opened:
    del dataset
    return Opened(_line_pieces(file, min(size, _PIECE_BYTES), begin))


def _line_pieces(file: BinaryIO, size: int, first: int) -> Iterator[Piece]:
    for begin, block in blocks(file, size, begin=first):
        yield Piece(begin, count_records(block, at_start=begin == 0), len(block))


def _json_portions(file: BinaryIO, split: Split, wanted: Wanted) -> Iterator[Portion]:
    for begin, block in blocks(file, _BLOCK_BYTES, begin=split.begin, end=split.end):
        text = without_mark(block) if begin == 0 else block
        yield _json_portion(text, split, wanted)


def _json_portion(text: bytes, split: Split, wanted: Wanted) -> Portion:
    declared = wanted.dataset.events.columns
    return Portion(
        count_records(text, at_start=False),
        lambda: map(parsed, records_of(text)),
        lambda first: chunk_of_lines(split.file, first, text, wanted.schema, declared),
    )


def _csv_pieces(file: BinaryIO, dataset: ResolvedDataset, size: int, begin: int) -> Opened:
    """Pieces of whole records; a header line declares columns without types."""
    layout = Layout.of(dataset)
    records = placed_pieces(file, layout.dialect, skip=layout.skip_lines)
    types: dict[str, DataType] = {}
    if layout.names is None:
        _, header = next(records, (0, b""))
        types = dict.fromkeys(column_names(header, layout.dialect), Void()) if header else {}
    if begin:
        records = placed_pieces(file, layout.dialect, begin=begin)
    return Opened(_record_pieces(file, records, min(size, _PIECE_BYTES)), types)


def _record_pieces(
    file: BinaryIO, records: Iterator[tuple[int, bytes]], size: int
) -> Iterator[Piece]:
    begin, count = -1, 0
    for place, _ in records:
        if begin < 0:
            begin = place
        elif place - begin >= size:
            yield Piece(begin, count, place - begin)
            begin, count = place, 0
        count += 1
    if count:
        yield Piece(begin, count, file.tell() - begin)


def _csv_portions(file: BinaryIO, split: Split, wanted: Wanted) -> Iterator[Portion]:
    """Records of a split as those of a file of its own, with the header line of its file."""
    layout = Layout.of(wanted.dataset)
    header = b""
    if layout.names is None:
        _, header = next(placed_pieces(file, layout.dialect, skip=layout.skip_lines), (0, b""))
    # A line of its own also where there is no header: only the first may have a byte order mark.
    head = header + b"\n" if split.begin else b""
    own = part_of(file, head, split.begin, split.end)
    records = open_csv(own, 0, layout.of_one_record()).records
    while portion := list(islice(records, _ROWS)):
        yield Portion(len(portion), partial(_given, portion))


def _given(records: list[RawRecord]) -> Iterator[RawRecord]:
    return iter(records)


JSON: Final = Kind(_json_pieces, _json_portions, declares_types=False, is_read_whole=True)
CSV: Final = Kind(_csv_pieces, _csv_portions, builder=text_builder, declares_types=False)
