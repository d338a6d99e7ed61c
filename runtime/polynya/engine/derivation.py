"""What a derived table is made of, and whether it still shows that.

A derived table is up to date while its query, the texts of its inputs and their rows are those of
its last step. These functions tell it from the states of tables, however these were read: by a unit
of a run (`engine/tasks/derived.py`), or without a JVM (`engine/idle.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polynya.derived.expectations import referenced
from polynya.derived.flow import compile_flow, tables_read
from polynya.derived.inputs import (
    ANYWHERE,
    QueryInput,
    dataset_named,
    reads_history,
    view_of_input,
)
from polynya.derived.schema import DerivedInput, as_flow_input
from polynya.derived.tables import ParsedQuery, parsed_query
from polynya.lake.copy.derived_result import result_digest
from polynya.lake.fold.live_views import columns_of, columns_of_history_input
from polynya.lake.fold.shape import Shape
from polynya.lake.read.commits import snapshots_between
from polynya.lake.read.committed import CommittedTable
from polynya.lake.read.inspect import states
from polynya.lake.table.shaping import shape_of
from polynya.lake.table.state import CopyState, Derivation
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedQuery
from polynya.model.config.registered import RegisteredDataset
from polynya.model.documents.yaml import NodePath, dotted
from polynya.model.error_catalogue.derived import QUERY_INPUT_UNKNOWN
from polynya.model.types import DataType, parse_type

#: Why it is not known which rows of a registered table changed.
WITHOUT_KEYS: Final = "it is registered without keys"


@dataclass(frozen=True, slots=True)
class InputTable:
    """A table that a query reads, as of its newest commit.

    `metadata` is that of the table, as Iceberg's specification writes it in JSON.
    """

    dataset: ResolvedDataset
    snapshot: int
    copy: CopyState
    shape: Callable[[], Shape]
    metadata: Callable[[], Mapping[str, Any]]

    @property
    def internal(self) -> str:
        """`schema.table` of the internal table."""
        return self.dataset.relations.internal

    def columns(self, name: str) -> Mapping[str, DataType]:
        """The columns of the table as a query reads it by a name."""
        if reads_history(name, self.dataset):
            return columns_of_history_input(self.shape())
        return columns_of(self.dataset, self.shape(), self.dataset.relations.view) or {}

    def view(self, name: str, place: str = ANYWHERE) -> str:
        """The text of the view that a query reads by a name, over a quoted place of the table."""
        return view_of_input(name, self.dataset, self.shape(), place)


def shows_same_rows(metadata: Mapping[str, Any], before: int, now: int) -> bool:
    """Whether two snapshots of a table surely show the same rows; `before` is the older one.

    `metadata` is that of the table, as Iceberg's specification writes it in JSON.
    """
    return snapshots_between(metadata, before, now) == []


def input_name(dataset: RegisteredDataset) -> str:
    """The name of a registered table among the inputs of a step. No internal table has it."""
    return f"registered:{dataset.relations.current}"


def names_read(
    query: DerivedQuery, datasets: Callable[[], Sequence[QueryInput]], where: str
) -> tuple[str, ...]:
    """The tables that a query reads, as it names them; `datasets` are those that it may read.

    Raises OperationError for a flow that does not say which of several it begins with.
    """
    if not query.flow:
        return parsed_query(query.text, where).names
    named = tables_read(query.flow)
    if named is not None:
        return tuple(named)
    there = datasets()
    if len(there) > 1:
        raise QUERY_INPUT_UNKNOWN(
            "the first step of the flow does not say which table it reads",
            where=where,
            fix="add `input` to it",
        )
    return tuple(dataset.relations.current for dataset in there)


def described(inputs: Mapping[str, InputTable]) -> dict[str, DerivedInput]:
    """What a query may read, by its name in the query."""
    return {
        name: DerivedInput(
            name,
            {column: str(kind) for column, kind in table.columns(name).items()},
            # A key has several versions, and two of them may begin at the same moment.
            () if reads_history(name, table.dataset) else tuple(table.copy.columns.keys),
        )
        for name, table in inputs.items()
    }


def parsed_over(query: DerivedQuery, inputs: Mapping[str, DerivedInput], where: str) -> ParsedQuery:
    """A query over its inputs: a flow depends on their columns.

    Raises ConfigErrors for a flow that does not fit them.
    """
    if not query.flow:
        return parsed_query(query.text, where)

    def place(path: NodePath) -> str:
        return f"{where}: {dotted((*query.path, *path))}"

    tables = {name: as_flow_input(one) for name, one in inputs.items()}
    return parsed_query(compile_flow(query.flow, tables, place).sql, where)


def read_through(tables: Iterable[InputTable]) -> dict[str, set[int]]:
    """The snapshots at which tables have read their own inputs, by the names of these."""
    read: dict[str, set[int]] = {}
    for table in tables:
        derivation = table.copy.derivation
        for name, snapshot in (derivation.inputs if derivation is not None else {}).items():
            read.setdefault(name, set()).add(snapshot)
    return read


def snapshots_to_read(
    tables: Iterable[InputTable], read: Mapping[str, set[int]]
) -> dict[str, int] | None:
    """The snapshot at which each table is read, by the name of its internal table.

    None while two transforms among them have read a table at two snapshots (`read`): the one that
    is behind has not followed yet.
    """
    by_name = {table.internal: table for table in tables}
    chosen = {name: table.snapshot for name, table in by_name.items()}
    for name in read.keys() & chosen.keys():
        as_read = _as_read(by_name[name], read[name])
        if as_read is None:
            return None
        chosen[name] = as_read
    return chosen


def _as_read(table: InputTable, read: set[int]) -> int | None:
    """The snapshot that shows the rows of all snapshots of `read`, preferably the newest one.

    None if these show different rows.
    """
    newest = table.snapshot
    if read == {newest}:
        return newest
    for snapshot in (newest, *read):
        if all(shows_same_rows(table.metadata(), one, snapshot) for one in read):
            return snapshot
    return None


def shows_inputs(
    before: Derivation, now: Derivation, tables: Iterable[InputTable], same: dict[str, int]
) -> bool:
    """Whether the result of a step shows what the query returns over the snapshots of `now`.

    `same` has snapshots of inputs that show the rows of that step, and gets others.
    """
    if before.query != now.query or before.inputs.keys() != now.inputs.keys():
        return False
    for table in tables:
        name = table.internal
        if now.inputs[name] in {before.inputs[name], same.get(name)}:
            continue
        since = same.get(name, before.inputs[name])
        if not shows_same_rows(table.metadata(), since, now.inputs[name]):
            return False
        same[name] = now.inputs[name]
    return True


def committed_input(dataset: ResolvedDataset, table: CommittedTable | None) -> InputTable | None:
    """An input out of the files of its table; None before its first commit."""
    if table is None or table.snapshot is None:
        return None
    copy, _ = states(table)
    columns = {name: parse_type(text) for name, text in copy.columns.schema.items()}
    shape = shape_of(dataset, copy, columns, tuple(copy.columns.keys))
    number = int(table.snapshot["snapshot-id"])
    return InputTable(dataset, number, copy, lambda: shape, lambda: table.metadata)


def why_outdated(
    query: DerivedQuery,
    dataset: ResolvedDataset,
    before: Derivation | None,
    there: Sequence[tuple[ResolvedDataset, InputTable | None]],
) -> str | None:
    """Why a derived table may not show what its query returns; None: it surely does.

    `before` is what its last step has read, `there` are the tables that the query may read, those
    of the project alone. Raises what reading the query raises.
    """
    name, datasets = dataset.relations.current, [one for one, _ in there]
    read = names_read(query, lambda: datasets, name)
    inputs: dict[str, InputTable] = {}
    for one in dict.fromkeys([*read, *referenced(query.expect)]):
        found = dataset_named(one, datasets, where=name, may_grow=True, in_flow=bool(query.flow))
        table = next((table for other, table in there if other is found), None)
        if table is None or not table.shape().data:
            return f"it waits for {one}"
        inputs[one] = table
    snapshots = snapshots_to_read(inputs.values(), read_through(inputs.values()))
    if before is None or snapshots is None:
        return "it was not derived yet, or its inputs are at two states"
    own = {one: table for one, table in described(inputs).items() if one in read}
    texts = {one: table.view(one) for one, table in inputs.items()}
    text, keys = parsed_over(query, own, name).text, dataset.events.keys
    digest = result_digest(text, keys, texts, query.expect)
    now = Derivation(digest, snapshots, before.until)
    if shows_inputs(before, now, inputs.values(), {}):
        return None
    return "its query or the rows of its inputs have changed"
