"""Keys, order, time and deletes out of typed records: only what the values of the sample prove.

A wrong key replaces records without a word. So a key is proposed where each record of the sample
has another value of it, or where an order makes the repeated ones versions of one thing; without
proof every record is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.model.names import literal
from polynya.model.types import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType
from polynya.proposal.column_types import words
from polynya.proposal.settings import ProposedEvents, ProposedSetting

_OPERATION: Final = frozenset({"op", "operation", "_op", "op_type", "change_type", "action"})
_DELETES: Final = frozenset({"d", "delete", "deleted", "remove"})
_OPERATIONS: Final = _DELETES | frozenset(
    {"i", "u", "c", "r", "insert", "update", "create", "upsert", "read", "inserted", "updated"}
)
_IDENTIFIERS: Final = frozenset({"id", "key", "uuid", "guid", "pk"})
#: Words of a name that says in which order versions came, the best first.
_SEQUENCE: Final = (
    "sequence", "seq", "lsn", "scn", "version", "revision", "offset", "updated", "modified",
    "changed",
)  # fmt: skip
#: Those of them that no line number, place in a log or part of a thing has.
_VERSIONS: Final = frozenset({"version", "revision", "updated", "modified", "changed"})
#: Words of the name of a time that orders events where nothing better does.
_EVENT: Final = ("event", "timestamp", "ts")
_TIME: Final = ("event", "updated", "modified", "changed", "timestamp", "created", "time", "at")
_INSTANTS: Final = frozenset({TIMESTAMP, TIMESTAMP_NTZ})
_ORDERED: Final = frozenset({INT, BIGINT, TIMESTAMP, TIMESTAMP_NTZ, DATE})
#: The share of successive versions with the same key that keep the value of some other column.
_SAME_SHARE: Final = 0.5


def proposed_events(
    rows: pa.Table,
    schema: Mapping[str, DataType],
    name: str,
    *,
    is_whole: bool,
    has_order: bool = False,
) -> ProposedEvents:
    """What identifies, orders and deletes the records of a dataset that is called `name`.

    `rows` are typed, one row a record; `is_whole`: they are all that the source holds;
    `has_order`: records are ordered by their place in it, so that a key needs no column for that.
    """
    records = _Records(rows, schema, name, is_whole=is_whole, has_order=has_order)
    operation, deletes = records.operation()
    sequence = records.sequence(operation)
    timestamp = records.timestamp()
    key, replaced, reason = records.key(sequence, operation)
    if key is None:
        return ProposedEvents(timestamp=timestamp, appended=reason)
    left_out = [operation]
    if sequence is not None and _is_number(schema, sequence):
        left_out.append(str(sequence.value))
    return ProposedEvents(
        key=key,
        sequence=sequence,
        timestamp=timestamp,
        deletes=deletes,
        left_out=tuple(str(column) for column in left_out if column),
        replaced=replaced,
    )


def appended(events: ProposedEvents, reason: str) -> ProposedEvents:
    """The same, with a row for each record."""
    return replace(ProposedEvents(timestamp=events.timestamp), appended=reason)


def _is_number(schema: Mapping[str, DataType], setting: ProposedSetting) -> bool:
    return schema[str(setting.value)] in {INT, BIGINT}


@dataclass(frozen=True, slots=True)
class _Records:
    rows: pa.Table
    schema: Mapping[str, DataType]
    name: str
    is_whole: bool
    has_order: bool

    @property
    def of(self) -> str:
        """How many records were looked at."""
        return f"{self.rows.num_rows:,} records" + ("" if self.is_whole else " of the sample")

    def operation(self) -> tuple[str | None, ProposedSetting | None]:
        """The column that says what happened to a record, and the condition of a delete."""
        for column, kind in self.schema.items():
            if column.lower() not in _OPERATION or kind != STRING:
                continue
            counts = {
                item["values"]: item["counts"]
                for item in pc.value_counts(self._of(column).drop_null()).to_pylist()
            }
            if not counts or not {text.lower() for text in counts} <= _OPERATIONS:
                continue
            deletes = sorted(text for text in counts if text.lower() in _DELETES)
            if not deletes:
                short = all(len(text) == 1 for text in counts)
                condition = f"{column} = '{'D' if short else 'DELETE'}'"
                return column, ProposedSetting(condition, "no delete is in the sample: check")
            texts = ", ".join(map(literal, deletes))
            test = f"= {texts}" if len(deletes) == 1 else f"IN ({texts})"
            seen = sum(counts[text] for text in deletes)
            return column, ProposedSetting(f"{column} {test}", f"{seen:,} in the sample")
        return None, None

    def sequence(self, operation: str | None) -> ProposedSetting | None:
        """The column that orders the versions of a record, by its name and its values."""
        parts = (*_SEQUENCE, *_EVENT, *(_TIME if operation else ()))
        for part in parts:
            for column in self._whole(_ORDERED):
                if part in words(column):
                    reason = "by its name; it orders the versions of a record: check"
                    return ProposedSetting(column, reason)
        return None

    def timestamp(self) -> ProposedSetting | None:
        """The time of the event."""
        times = list(self._whole(_INSTANTS))
        for part in _TIME:
            for column in times:
                if part in words(column):
                    return ProposedSetting(column, "a time in each record")
        return None

    def key(
        self, sequence: ProposedSetting | None, operation: str | None
    ) -> tuple[ProposedSetting | None, int, str]:
        """The column that identifies a record, what it would replace, or why nothing does."""
        count = self.rows.num_rows
        reason = "nothing in the sample identifies a record"
        candidates = [c for c in self._candidates() if sequence is None or c != sequence.value]
        for column in candidates:
            if count > 1 and self._distinct(column) == count:
                if sequence is None and not self.has_order:
                    order = "but nothing orders versions of one; else set `keys` and `sequence_by`"
                    return None, 0, f"`{column}` differs in each of {self.of}, {order}"
                text = f"differs in each of {self.of}, never NULL: it would replace none"
                return ProposedSetting(column, text), 0, ""
        for column in candidates:
            if sequence is None or not (self._is_own(column) or operation):
                continue
            replaced = count - self._distinct(column)
            if self._are_versions(column, str(sequence.value), operation):
                text = f"never NULL; it would replace {replaced:,} of {self.of} by newer versions"
                return ProposedSetting(column, text), replaced, ""
            reason = f"as a key `{column}` would replace {replaced:,} of {self.of}"
        return None, 0, reason

    def _candidates(self) -> list[str]:
        """Columns that are called as an identifier is, the one of the records first."""
        kinds = frozenset({INT, BIGINT, STRING})
        named = [
            column
            for column in self._whole(kinds)
            if words(column)[-1:] and words(column)[-1] in _IDENTIFIERS
        ]
        return sorted(named, key=lambda column: not self._is_own(column))

    def _is_own(self, column: str) -> bool:
        """Whether the name says that it identifies the records themselves: `id`, `order_id`."""
        own = self.name.lower().replace("_", "")
        singular = own.removesuffix("s")
        text = column.lower().replace("_", "")
        return text in {f"{part}{word}" for part in ("", own, singular) for word in _IDENTIFIERS}

    def _are_versions(self, key: str, order: str, operation: str | None) -> bool:
        """Whether repeated values of a key are an older and a newer version of one thing.

        No two have the same place in the order. An operation says it; else some other column keeps
        its value from one version to the next.
        """
        pairs = self.rows.select([key, order]).group_by([key, order]).aggregate([])
        if pairs.num_rows < self.rows.num_rows:
            return False
        if operation is not None:
            return True
        if _VERSIONS.isdisjoint(words(order)):
            return False
        table = self.rows.sort_by([(key, "ascending"), (order, "ascending")])
        keys = table.column(key).combine_chunks()
        again = pc.equal(keys[1:], keys[:-1])
        others = [
            column
            for column, kind in self.schema.items()
            if column not in {key, order} and kind in {INT, BIGINT, STRING}
        ]
        return any(self._is_kept(table.column(column), again) for column in others)

    def _is_kept(self, values: pa.ChunkedArray, again: pa.Array) -> bool:
        """Whether a column that tells things apart keeps its value in most versions of one."""
        if pc.count_distinct(values).as_py() < 2:
            return False
        column = values.combine_chunks()
        same = pc.fill_null(pc.equal(column[1:], column[:-1]), fill_value=False)
        kept = pc.sum(pc.and_(same, again)).as_py() or 0
        changed = pc.sum(pc.and_(pc.invert(same), pc.invert(again))).as_py() or 0
        total, other = pc.sum(again).as_py() or 0, pc.sum(pc.invert(again)).as_py() or 0
        return bool(total) and kept / total >= _SAME_SHARE and (not other or changed / other > 0.5)

    def _whole(self, kinds: frozenset[DataType]) -> Iterator[str]:
        """Columns of some types, without a NULL."""
        for column, kind in self.schema.items():
            if kind in kinds and self.rows.num_rows and not self._of(column).null_count:
                yield column

    def _distinct(self, column: str) -> int:
        found: int = pc.count_distinct(self._of(column)).as_py()
        return found

    def _of(self, column: str) -> pa.ChunkedArray:
        return self.rows.column(column)
