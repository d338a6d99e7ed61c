"""The history of one record: its events and versions in one order, with both clocks. Pure.

Facts are the stored rows of the record (`query/record_rows.py`). What is pending takes the place
that the next apply gives it: `valid_from` is the time of the event, raised to that of the version
before it (semantics section 3), and `valid_to` that of the next one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any, Final, Literal, TypeAlias

from polynya.lake.fold.fold import TRUNCATED
from polynya.model import headers as h
from polynya.model.headers import ALL_BUT, Partition

EntryKind: TypeAlias = Literal["load", "insert", "update", "delete", "truncate", "correction"]
_KINDS: Final[Mapping[str, EntryKind]] = {
    "L": "load",
    "I": "insert",
    "U": "update",
    "D": "delete",
    "T": "truncate",
    "i": "correction",
    "u": "correction",
    "d": "correction",
}
_GONE: Final = frozenset({"D", "T", "d"})
#: Columns of a row that are no data.
_HEADERS: Final = frozenset(h.HEADER_NAMES)


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """One event of a record, and the version that it made.

    Attributes:
        sequence: change identifier and tail; empty for rows of a first load.
        kind: what it did; a correction is a difference that a reload or an extract found.
        operation: as the header column has it.
        values: the data columns, as far as they are known.
        source_time: time of the event in the source.
        copied_at: when the engine copied it; None where only the version is kept.
        applied_at: when it was applied; None while it is pending, or where that is not kept.
        pending: the next apply takes it in; live views show it already.
        late: something that comes after it had been copied, or applied, before.
        valid_from, valid_to: of the version, in source time; None: none, or still valid.
        visible_from, visible_to: in engine time, when Current showed the record as this left it;
            None: never, or still. Where `exact` is false, `visible_from` is the apply, and live
            views had shown it a little earlier.
        unsent: columns that the event did not carry: they keep the values from before.
        changed: columns whose values differ from those before.
        position: place in the source that breaks ties.
        deliveries: events of this sequence that were kept: the same change may come again.
    """

    sequence: str
    kind: EntryKind
    operation: str
    values: Mapping[str, Any]
    source_time: datetime | None = None
    copied_at: datetime | None = None
    applied_at: datetime | None = None
    pending: bool = False
    late: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    visible_from: datetime | None = None
    visible_to: datetime | None = None
    exact: bool = False
    unsent: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    position: str | None = None
    deliveries: int = 1

    @property
    def is_gone(self) -> bool:
        """Whether the record does not exist after it."""
        return self.operation in _GONE

    @property
    def arrived(self) -> datetime | None:
        """When it was known to the engine, at the latest."""
        return self.copied_at or self.applied_at


def record_entries(
    rows: Iterable[Mapping[str, Any]],
    truncates: Iterable[Mapping[str, Any]] = (),
    *,
    appends: bool = False,
    derived: bool = False,
) -> list[RecordEntry]:
    """The entries of a record in the order of its events.

    Args:
        rows: its events and versions, as `record_rows` gives them.
        truncates: events that delete every record that is older.
        appends: its dataset keeps each row, so that no row supersedes another one.
        derived: a query makes the rows, so that a difference is a change and no correction.
    """
    ordered = sorted([*rows, *truncates], key=_order)
    entries = []
    for _, same in groupby(ordered, key=_order if appends else _place):
        entries.append(_entry(list(same), derived=derived))
    if appends:
        return [replace(one, valid_from=None, visible_from=one.arrived) for one in entries]
    # First: also a truncate that finds nothing by now may have hidden the record for a while.
    entries = _with_visibility(entries)
    entries = _without_idle_truncates(entries)
    entries = _with_validity(entries)
    return _with_values(entries)


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Place of a row in the order of events; rows of first loads come before all of them."""
    sequence, tail = row.get(h.CHANGE_IDENTIFIER) or "", row.get(h.SEQUENCE_TAIL) or ""
    # Several loads of one record are versions one after the other.
    loaded = "" if sequence else str(row.get(h.FROM_TIMESTAMP) or "")
    return sequence, tail, loaded


def _order(row: Mapping[str, Any]) -> tuple[tuple[str, str, str], bool, str]:
    is_version = row[h.PARTITION] in {Partition.CURRENT, Partition.PRIOR}
    return _place(row), is_version, str(row.get(h.INSERTED_TIMESTAMP) or "")


def _entry(rows: Sequence[Mapping[str, Any]], *, derived: bool) -> RecordEntry:
    """The entry of rows with one place: events, and the version that they made."""
    versions = [one for one in rows if one[h.PARTITION] in {Partition.CURRENT, Partition.PRIOR}]
    events = [one for one in rows if one not in versions]
    first = events[0] if events else None
    version = versions[-1] if versions else None
    row = version or first
    assert row is not None, "a group has a row"
    operation = str(row[h.OPERATION])
    position = row.get(h.SOURCE_POSITION)
    known = operation.upper() if derived else operation
    kind = "truncate" if position == TRUNCATED else _KINDS.get(known, "update")
    applied = None
    if version is not None:
        stored_in_current = version[h.PARTITION] == Partition.CURRENT
        applied = version.get(h.MODIFIED_TIMESTAMP if stored_in_current else h.WAS_CURRENT_FROM)
        if stored_in_current and operation == "L":
            applied = version.get(h.INSERTED_TIMESTAMP)
    elif first is not None:
        applied = first.get(h.WAS_CURRENT_FROM)
    source = first if first is not None else row
    return RecordEntry(
        sequence="".join(_place(row)[:2]),
        kind=kind,
        operation=operation,
        values={name: value for name, value in row.items() if name not in _HEADERS},
        source_time=source.get(h.TIMESTAMP) or row.get(h.FROM_TIMESTAMP),
        copied_at=None if first is None else first.get(h.INSERTED_TIMESTAMP),
        applied_at=applied,
        pending=version is None and any(one[h.PARTITION] == Partition.CHANGES for one in events),
        valid_from=None if version is None else version.get(h.FROM_TIMESTAMP),
        valid_to=None if version is None else version.get(h.TO_TIMESTAMP),
        unsent=_unsent(source, row),
        position=None if position == TRUNCATED else position,
        deliveries=max(1, len(events)),
    )


def _unsent(event: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns that an event did not carry; the list may say which ones it did carry."""
    try:
        listed = json.loads(event.get(h.UNSENT) or "[]")
    except ValueError:
        return ()
    names = [name for name in listed if isinstance(name, str)]
    data = [name for name in row if name not in _HEADERS]
    if ALL_BUT in names:
        return tuple(name for name in data if name not in names)
    return tuple(name for name in data if name in names)


def _without_idle_truncates(entries: Sequence[RecordEntry]) -> list[RecordEntry]:
    """The entries without truncates that found no record to delete."""
    kept: list[RecordEntry] = []
    for one in entries:
        found_none = kept[-1].is_gone if kept else one.operation == "T"
        if one.kind != "truncate" or not found_none:
            kept.append(one)
    return kept


def _with_validity(entries: Sequence[RecordEntry]) -> list[RecordEntry]:
    """The entries with the intervals that the next apply leaves."""
    made: list[RecordEntry] = []
    before: datetime | None = None
    # Of stored versions only those end elsewhere that something pending comes before or after.
    pending = [number for number, one in enumerate(entries) if one.pending]
    first = pending[0] - 1 if pending else len(entries)
    is_moved = [number >= first for number in range(len(entries))]
    for one in entries:
        begin = one.valid_from or one.source_time
        if begin is not None and before is not None:
            begin = max(begin, before)
        made.append(replace(one, valid_from=begin))
        before = begin or before
    return [
        replace(one, valid_to=following.valid_from)
        if following is not None and (one.valid_to is None or is_moved[number])
        else one
        for number, (one, following) in enumerate(
            zip(made, [*made[1:], None][: len(made)], strict=True)
        )
    ]


def _with_values(entries: Sequence[RecordEntry]) -> list[RecordEntry]:
    """The entries with values that were not sent, and the columns that each one changed."""
    made: list[RecordEntry] = []
    values: dict[str, Any] = {}
    follows_pending = False
    for one in entries:
        if one.is_gone:
            follows_pending = follows_pending or one.pending
            made.append(one)
            values = {}
            continue
        own = dict(one.values)
        follows_pending = follows_pending or one.pending
        if follows_pending:
            own |= {name: values.get(name) for name in one.unsent}
        changed = tuple(
            name for name, value in own.items() if not values or values.get(name) != value
        )
        made.append(replace(one, values=own, changed=changed if values else ()))
        values = own
    return made


def _with_visibility(entries: Sequence[RecordEntry]) -> list[RecordEntry]:
    """The entries with the engine times between which Current showed them, and what came late.

    At each moment Current shows the last in the order of events of all that had arrived.
    """
    arrivals = sorted(
        (number for number, one in enumerate(entries) if one.arrived is not None),
        key=lambda number: (entries[number].arrived, number),
    )
    spans: dict[int, tuple[datetime, datetime | None]] = {}
    shown: int | None = None
    late = set()
    for place, number in enumerate(arrivals):
        at = entries[number].arrived
        assert at is not None, "only what arrived is looked at"
        if shown is not None and number < shown:
            if entries[shown].arrived != at:
                late.add(number)
            continue
        later = [other for other in arrivals[place + 1 :] if entries[other].arrived == at]
        if any(other > number for other in later):
            # It was superseded in the same step.
            continue
        if shown is not None:
            spans[shown] = spans[shown][0], at
        spans[number], shown = (at, None), number
    return [
        replace(
            one,
            late=number in late,
            exact=one.copied_at is not None,
            visible_from=spans[number][0] if number in spans else None,
            visible_to=spans[number][1] if number in spans else None,
        )
        for number, one in enumerate(entries)
    ]
