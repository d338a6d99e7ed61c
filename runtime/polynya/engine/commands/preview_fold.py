"""The rows that some records would leave in Current, computed in memory for a preview.

`current` is the fold of semantics section 4, for the newest version only and over the given events.
It does not read the table: a column that keeps its stored value is `STORED`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import DatasetBatch
from polynya.lake.copy.rows import ERRORS, choice_in, chosen, decided
from polynya.lake.copy.values import Session
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.evolution import SchemaChange
from polynya.model.errors import ConfigError
from polynya.model.headers import ALL_BUT

#: Where the type of a column comes from: the setting `columns`, the table, the schema that the
#: files or the source declare, the values, or the expression of a mapped column. `nothing`: only
#: NULL was met.
Origin: TypeAlias = Literal["declared", "table", "schema", "inferred", "expression", "nothing"]


@dataclass(frozen=True, slots=True)
class PreviewColumn:
    """A column of the table. `was` is its type in the table where that changes."""

    name: str
    type: str
    origin: Origin
    is_key: bool = False
    was: str | None = None


@dataclass(frozen=True, slots=True)
class PreviewRecord:
    """A record as an event; `number` counts from 1 in its file."""

    file: str
    number: int
    operation: str
    sequence: Mapping[str, Any]
    key: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """A row of the live view. `stored` names columns that keep what the table holds."""

    values: Mapping[str, Any]
    stored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A record that would go to quarantine; `number` is None for a whole file."""

    file: str
    number: int | None
    rule: str
    error: str


@dataclass(frozen=True, slots=True)
class PreviewMessages:
    """Messages of a source that the next landed batch would contain.

    `count` were read of `streams`; `content` is what they are taken for. `behind` them is so much
    at most, in the `unit` that the source counts: `records`, `shards` or `files`.
    """

    source: str
    content: str
    streams: tuple[str, ...]
    count: int
    behind: int
    unit: str


@dataclass(frozen=True, slots=True)
class DatasetPreview:
    """What the next records of a dataset would become.

    Attributes:
        dataset: `schema.view`; of records without a table the name of the task.
        is_new: it has no table yet.
        is_rest: these are records that belong to no dataset.
        load: the files are those of a full load, or of a full extract.
        files: those that were read, in order; `files_waiting` are there in all.
        looked_at: records that were read; `is_cut` says that there are more.
        filtered: records that are left out, by the reason.
        keys: key columns, empty where records are appended.
        excluded: columns that the table does not get.
        changes: changes of the source's shape, each with the policy that decides.
        halted: why nothing of it would be copied.
        unknown: the error for settings that name a column which is not there.
        records: the first of them; `rows`: the first rows of the live view, of `row_count`.
        quarantined: how many records go there; `refused` are the first of them.
        notes: further remarks.
        messages: of a landing, what was read; its rows are the records of these messages.
    """

    dataset: str
    task: str
    format: str
    is_new: bool
    is_rest: bool = False
    load: bool = False
    files: tuple[str, ...] = ()
    files_waiting: int = 0
    looked_at: int = 0
    is_cut: bool = False
    filtered: Mapping[str, int] | None = None
    keys: tuple[str, ...] = ()
    sequence_by: tuple[str, ...] = ()
    columns: tuple[PreviewColumn, ...] = ()
    excluded: tuple[str, ...] = ()
    changes: tuple[SchemaChange, ...] = ()
    halted: str | None = None
    unknown: ConfigError | None = None
    records: tuple[PreviewRecord, ...] = ()
    rows: tuple[PreviewRow, ...] = ()
    row_count: int = 0
    quarantined: Mapping[str, int] | None = None
    refused: tuple[RejectedRecord, ...] = ()
    notes: tuple[str, ...] = ()
    messages: PreviewMessages | None = None

    @property
    def is_refused(self) -> bool:
        """Whether a run would copy nothing of it."""
        return self.halted is not None or self.unknown is not None


#: A key as text that equals that of the same key only.
Key: TypeAlias = str
Values: TypeAlias = Mapping[str, Any]


class StoredValue:
    """The value that the table holds."""

    def __repr__(self) -> str:
        return "(stored)"


STORED: Final = StoredValue()


@dataclass(frozen=True, slots=True)
class PreviewEvent:
    """One change. `place` sorts as the events do; `operation` is L, I, U, D or T.

    `unsent` are columns that the source did not send; `old_key` is the key of the record whose
    values they keep, where that is another one. `record` is the key of the record whose element
    it is, where a newer record replaces them; `is_record`: it is such a record.
    """

    key: Key
    place: str
    operation: str
    values: Values = field(default_factory=dict)
    position: str | None = None
    unsent: frozenset[str] = frozenset()
    old_key: Key | None = None
    record: Key | None = None
    is_record: bool = False

    @property
    def is_delete(self) -> bool:
        """Whether it ends its record."""
        return self.operation in {"D", "d"}


@dataclass(frozen=True, slots=True)
class RecordState:
    """A record after some events; `values` of a deleted one are those that it had."""

    values: Values
    alive: bool


@dataclass(frozen=True, slots=True)
class CurrentRecords:
    """The records that events touch, and the number of positions with different events."""

    states: Mapping[Key, RecordState]
    ties: int


def current(events: Sequence[PreviewEvent], *, is_new: bool) -> CurrentRecords:
    """Fold events; `is_new`: there is no table, so that nothing is stored of any record."""
    by_key: dict[Key, list[PreviewEvent]] = {}
    truncates: dict[str, PreviewEvent] = {}
    for event in events:
        if event.operation == "T":
            truncates[event.place] = event
        elif not event.is_record:
            by_key.setdefault(event.key, []).append(event)
    for key, lacking in _replaced(by_key, events).items():
        by_key[key] += lacking
    ties = 0
    chains: dict[Key, list[PreviewEvent]] = {}
    for key, own in by_key.items():
        chain, tied = _collapsed(own)
        ties += tied
        taken = {event.place for event in chain}
        chain += [truncate for place, truncate in truncates.items() if place not in taken]
        chains[key] = sorted(chain, key=lambda event: event.place)
    folding = _Folding(chains, is_new=is_new)
    return CurrentRecords({key: folding.state(key, None, frozenset()) for key in chains}, ties)


def _replaced(
    by_key: Mapping[Key, Sequence[PreviewEvent]], events: Sequence[PreviewEvent]
) -> dict[Key, list[PreviewEvent]]:
    """Deletes of elements by the records that lack them."""
    records: dict[Key | None, list[PreviewEvent]] = {}
    for event in events:
        if event.is_record:
            records.setdefault(event.record, []).append(event)
    return {
        key: [
            replace(record, key=key)
            for record in records.get(own[0].record, ())
            if all(event.place != record.place for event in own)
        ]
        for key, own in by_key.items()
    }


def _collapsed(own: Sequence[PreviewEvent]) -> tuple[list[PreviewEvent], int]:
    """One event a position: a delete wins, else the later position, else the last arrival."""
    places: dict[str, list[PreviewEvent]] = {}
    for event in own:
        places.setdefault(event.place, []).append(event)
    ties, kept = 0, []
    for group in places.values():
        best = [event for event in group if event.is_delete] or group
        latest = max(event.position or "" for event in best)
        best = [event for event in best if (event.position or "") == latest]
        # Which one wins by its content is for the table to say.
        ties += any(event.values != best[0].values for event in best)
        kept.append(best[-1])
    return kept, ties


class _Folding:
    """States of records; a change of key needs the state of another record."""

    def __init__(self, chains: Mapping[Key, Sequence[PreviewEvent]], *, is_new: bool) -> None:
        self._chains = chains
        self._is_new = is_new

    def state(self, key: Key, upto: str | None, asking: frozenset[tuple[Key, str]]) -> RecordState:
        """A record after its events, as far as they are not later than `upto`."""
        state: RecordState | None = None
        for event in self._chains.get(key, ()):
            if upto is not None and event.place > upto:
                break
            if event.operation == "T":
                state = RecordState(state.values if state else {}, alive=False)
            elif event.is_delete:
                state = RecordState(state.values if state else self._nothing(event), alive=False)
            else:
                state = RecordState(self._complete(event, state, asking), alive=True)
        return state or RecordState({}, alive=False)

    def _nothing(self, event: PreviewEvent) -> Values:
        """The values of a record that has no earlier event here."""
        return {} if self._is_new else dict.fromkeys(event.values, STORED)

    def _complete(
        self, event: PreviewEvent, before: RecordState | None, asking: frozenset[tuple[Key, str]]
    ) -> Values:
        """The values of an event, with those that it did not send."""
        if not event.unsent:
            return event.values
        if event.old_key is not None:
            place = (event.old_key, event.place)
            is_known = event.old_key in self._chains and place not in asking
            old = self.state(*place, asking | {place}) if is_known else None
            source = old.values if old is not None else self._nothing(event)
        elif before is None:
            source = self._nothing(event)
        else:
            source = before.values if before.alive else {}
        return {**event.values, **{name: source.get(name) for name in event.unsent}}


#: The name of an event's position where no column holds it.
POSITION_NAME: Final = "change_identifier"


@dataclass(frozen=True, slots=True)
class LandedRow:
    """One row: its values with the service columns of a batch, and its operation."""

    values: Mapping[str, Any]
    operation: str

    def key(self, keys: Sequence[str]) -> tuple[Any, ...]:
        """The values of the key columns."""
        return tuple(self.values.get(name) for name in keys)

    def is_record(self, keys: Sequence[str], within: Sequence[str]) -> bool:
        """Whether it is a record that replaces its elements, whose key begins `within` it."""
        return bool(within) and all(self.values.get(k) is None for k in keys if k not in within)

    def event(
        self,
        keys: Sequence[str],
        data: Collection[str],
        ignored: Collection[str],
        within: Sequence[str] = (),
    ) -> PreviewEvent:
        """The row as a change of its record.

        `data` are the columns of the table, `ignored` those that an update leaves out as NULL, or
        `ALL_BUT` for all of them. `within` is the key of a record that replaces its elements.
        """
        values = {name: self.values.get(name) for name in data}
        old = self.values.get("__old")
        moved = old is not None and bool(self.values["__unsent"])
        old_key = repr(tuple(old.get(name) for name in keys)) if old is not None else None
        return PreviewEvent(
            key=repr(self.key(keys)),
            place=str(self.values["__ci"]) + (self.values["__tail"] or ""),
            operation=self.operation,
            values=values,
            position=self.values["__position"],
            unsent=self._unsent(values, ignored) - set(keys),
            old_key=old_key if moved else None,
            record=repr(self.key(within)) if within else None,
            is_record=self.is_record(keys, within),
        )

    def _unsent(self, values: Mapping[str, Any], ignored: Collection[str]) -> frozenset[str]:
        listed = set(self.values["__unsent"] or ())
        unsent = set(values) - listed if ALL_BUT in listed else listed & set(values)
        if self.operation == "U" and ignored:
            named = values if ALL_BUT in ignored else ignored
            unsent |= {name for name in named if name in values and values[name] is None}
        return frozenset(unsent)

    def record(self, keys: Sequence[str], sequence_by: Sequence[str]) -> PreviewRecord:
        """The row as the record of its file."""
        place = str(self.values["__ci"] or "").lstrip("0")
        order = {name: self.values.get(name) for name in sequence_by}
        return PreviewRecord(
            file=str(self.values["__file"]),
            number=int(self.values["__offset"]) + 1,
            operation=self.operation,
            sequence=order or {POSITION_NAME: place or "0"},
            key=dict(zip(keys, self.key(keys), strict=True)),
        )


def landed_rows(
    batch: DatasetBatch, operations: Sequence[str], without: Collection[int]
) -> Iterator[LandedRow]:
    """The rows of a batch with their operations, but for those at some indexes."""
    columns = batch.rows.drop_columns(["__raw"])
    for index, values in enumerate(columns.to_pylist()):
        if index not in without:
            yield LandedRow(_with_maps(values, columns.schema), operations[index])


def _with_maps(values: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """The values with their maps as dictionaries: Arrow gives lists of pairs."""
    return {
        field.name: dict(values[field.name])
        if pa.types.is_map(field.type) and values[field.name] is not None
        else values[field.name]
        for field in schema
    }


def operations(batch: DatasetBatch, dataset: ResolvedDataset, session: Session) -> list[str]:
    """The operation of each row of a batch; `session` is started where it needs SQL."""
    if not batch.rows.num_rows:
        return []
    truncates = choice_in(dataset.truncates, batch.schema)
    deletes = choice_in(dataset.deletes, batch.schema)
    if truncates is None or deletes is None:
        return decided(session(), batch, dataset)
    letters: Any = pc.fill_null(batch.rows.column("__op"), "U")
    for choice, operation in ((deletes, "D"), (truncates, "T")):
        named = chosen(choice, batch.rows)
        letters = letters if named is None else pc.if_else(named, operation, letters)
    return [str(letter) for letter in letters.to_pylist()]


def refusals(
    batch: DatasetBatch, keys: Sequence[str], called: Sequence[str], horizon: str | None
) -> dict[int, tuple[str, str]]:
    """The rows that a table refuses in which `keys` are never NULL: index → rule and error.

    `called` are the operations, `horizon` is the sequence up to which tombstones are forgotten.
    """
    refused = {}
    names = [*keys, "__ci", "__tail"]
    there = [name for name in names if name in batch.rows.column_names]
    for index, row in enumerate(batch.rows.select(there).to_pylist() if keys else []):
        rule = None
        if any(row.get(key) is None for key in keys):
            rule = "null_key"
        elif horizon is not None and row["__ci"] + (row["__tail"] or "") <= horizon:
            rule = "older_than_horizon"
        if rule is not None and called[index] != "T":
            refused[index] = (rule, ERRORS[rule])
    return refused
