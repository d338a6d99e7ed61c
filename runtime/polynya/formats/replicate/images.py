"""Before images: what an update replaced. They are left out, except where they show another key.

A before image has the change sequence of its update. If its key differs, the record moved: it
becomes the delete of the old key, and the update the insert of the new one, which remembers the old
key so that columns that were not sent are carried over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polynya.formats.batch import Rejected
from polynya.formats.errors import RecordError
from polynya.formats.replicate.header import BEFORE_IMAGE, Header
from polynya.formats.replicate.rows import HEADER
from polynya.formats.values.buffer import RecordBuffer


@dataclass(slots=True)
class Row:
    """One record that is kept; `old_key` has one value a key column.

    `moved` tells that the record came to its key by an update: that comes after the delete of the
    old key, which has the same sequence.
    """

    index: int
    header: Header
    record: dict[str, Any]
    raw: bytes
    old_key: tuple[Any, ...] | None = None

    @property
    def moved(self) -> bool:
        """Whether the update changed the key."""
        return self.old_key is not None


def paired(buffer: RecordBuffer, keys: Sequence[str], kind: str) -> tuple[list[Row], int]:
    """Put before images and their updates together; `kind` is the format of the files.

    Returns:
        The rows that stay, in their order, and how many before images were left out. One without
        its update, or without a key, is rejected in `buffer`.
    """
    rows = [
        Row(index, record.pop(HEADER), record, raw)
        for index, (record, raw) in enumerate(zip(buffer.records, buffer.raws, strict=True))
    ]
    updates = {row.header.sequence: row for row in rows if row.header.operation == "U"}
    kept: list[Row] = []
    filtered = 0
    for row in rows:
        if row.header.operation != BEFORE_IMAGE:
            kept.append(row)
            continue
        update = updates.get(row.header.sequence)
        problem = _problem(row, update, keys)
        if problem is not None:
            buffer.rejected.append(_rejected(buffer, row, problem))
        elif update is None or not _moves(row, update, keys):
            filtered += 1
        else:
            kept.append(_deleted(row, keys))
            update.old_key = key_of(row.record, keys)
            # Read again from quarantine, the update needs its before image too.
            update.raw = joined_raw(row.raw, update.raw, kind)
    return kept, filtered


def joined_raw(before: bytes, after: bytes, kind: str) -> bytes:
    """The raw bytes of two records; CSV records begin with a line of names, which stays once."""
    if kind == "csv":
        names, _, _ = before.partition(b"\n")
        after = after.removeprefix(names + b"\n")
    return before + b"\n" + after


def key_of(record: Mapping[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    """The key columns of a record, as the file spells them."""
    return tuple(record.get(name) for name in keys)


def _problem(row: Row, update: Row | None, keys: Sequence[str]) -> RecordError | None:
    if not keys:
        return None  # nothing to move: every event is a row of its own
    if update is None:
        return RecordError("no_after", "a before image without its update")
    if None in key_of(row.record, keys):
        return RecordError("null_key", "a before image without its key")
    return None


def _moves(row: Row, update: Row, keys: Sequence[str]) -> bool:
    return bool(keys) and key_of(row.record, keys) != key_of(update.record, keys)


def _deleted(row: Row, keys: Sequence[str]) -> Row:
    """The delete of the old key; other values are not needed and could only be refused."""
    record = {name: row.record[name] for name in keys}
    return Row(row.index, replace(row.header, operation="D", unsent=()), record, row.raw)


def _rejected(buffer: RecordBuffer, row: Row, problem: RecordError) -> Rejected:
    return Rejected(
        buffer.files[row.index], buffer.offsets[row.index], problem.rule, problem.error, row.raw
    )
