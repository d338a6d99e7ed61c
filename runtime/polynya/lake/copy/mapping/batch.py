"""A batch as it was read becomes one with the columns of its table (docs/mapping.md).

The rows keep their places in the files and in the order of events; a record whose array gives
several rows gives them one place after the other. A record is set aside whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import OLD_KEY_FIELD, DatasetBatch
from polynya.lake.copy.derive import ERRORS
from polynya.lake.copy.mapping.captured import former_keys, keys_of, unsent_columns
from polynya.lake.copy.mapping.elements import Elements, Typed, elements_of, nulls_of
from polynya.lake.copy.mapping.kept import Kept, kept_columns
from polynya.lake.copy.mapping.rows import kept_rows, raw_of, rows_of, with_refused
from polynya.lake.copy.mapping.values import Made, Session, Wanted, computed
from polynya.lake.table.copy_state import SourceColumns
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.contract.identifiers import quote
from polynya.model.datatypes import BOOLEAN, DataType, Void, parse_type, widen
from polynya.observe.trace import span
from polynya.transform.expressions import expression_columns
from polynya.transform.mapping import Mapped, mapped
from polynya.transform.unnesting import columns_read

#: Rule of a record with a value that its column cannot hold.
RULE: Final = "mapping"
#: Reason under which the books count what `where` leaves out.
FILTERED: Final = "where"


@dataclass(frozen=True, slots=True)
class Before:
    """What the table knows: the types of its columns, and of those of the source."""

    table: Mapping[str, DataType]
    source: Mapping[str, DataType]

    @classmethod
    def of(cls, dataset: ResolvedDataset, columns: SourceColumns) -> Before:
        """What the state of a table knows."""
        table, source = (
            {name: parse_type(text) for name, text in types.items()}
            for types in (columns.schema, columns.of_source)
        )
        return cls(table, source if dataset.mapping.is_set else table)


@span("map")
def mapped_batch(
    batch: DatasetBatch, dataset: ResolvedDataset, before: Before, session: Session
) -> DatasetBatch:
    """The batch with the columns of the table; the same where nothing is mapped.

    `session` is asked only for expressions that take Spark. Raises ConfigError POLYNYA-MAP-001,
    -005 and -006 for a mapping that cannot be computed.
    """
    if not dataset.mapping.is_set:
        return batch
    return _Mapping(batch, dataset, before, mapped(dataset)).done(session)


@dataclass(frozen=True, slots=True)
class _Rows:
    """All rows before any is left out: columns of the table, operations, which ones stay."""

    columns: Mapping[str, Typed]
    operations: pa.Array
    wanted: pa.Array
    unsent: pa.Array
    faults: Mapping[int, str]


class _Mapping:
    """One batch on its way."""

    def __init__(
        self, batch: DatasetBatch, dataset: ResolvedDataset, before: Before, found: Mapped
    ) -> None:
        self._batch = batch
        self._dataset = dataset
        self._before = before
        self._mapped = found
        self._keys = keys_of(batch, dataset)
        self._appends = dataset.kept.mode == "append_only" or not self._keys
        #: Operations that no condition leaves out.
        self._exempt = ["T"] if self._appends else ["T", "D"]
        where = dataset.mapping.where
        self._of_where = frozenset() if where is None else columns_read(where)
        self._elements = (
            Elements(None, None, {})
            if found.array is None
            else elements_of(batch.rows, batch.schema, found.array)
        )

    def done(self, session: Session) -> DatasetBatch:
        """The batch of what the mapping makes."""
        made = self._made(session)
        records = self._elements.records
        refused = self._refused(made)
        stays = made.wanted
        if refused:
            bad: Any = pa.array([index in refused for index in range(self._batch.rows.num_rows)])
            of_bad = bad if records is None else bad.take(records)
            stays = pc.and_(stays, pc.invert(of_bad))
            filtered = pc.and_(pc.invert(made.wanted), pc.invert(of_bad))
        else:
            filtered = pc.invert(made.wanted)
        left_out = int(pc.sum(filtered).as_py() or 0)
        rejected = with_refused(self._batch, refused)
        schema = {name: one.kind for name, one in made.columns.items()}
        old = former_keys(self._batch, self._dataset, self._elements, self._keys, schema)
        said = {"__op": made.operations, "__unsent": made.unsent, OLD_KEY_FIELD: old}
        rows = kept_rows(rows_of(self._batch, self._elements, made.columns, said), stays)
        return replace(
            self._batch,
            rows=rows,
            schema=schema,
            keys=self._keys,
            rejected=rejected,
            rows_in=rows.num_rows + len(rejected) + self._batch.rows_filtered + left_out,
            rows_filtered=self._batch.rows_filtered + left_out,
            counters=self._counters(left_out),
            met=self._met(made.columns),
            raw_of=self._batch.raw_of if records is None else raw_of(self._batch),
            source=self._batch.schema,
        )

    def _made(self, session: Session) -> _Rows:
        batch, elements = self._batch, self._elements
        # An array whose elements are rows would be there once for each of them.
        read = {name for flat in self._mapped.texts for name in expression_columns(flat.text)}
        sources = {
            name: Typed(elements.of(batch.rows.column(name)), kind)
            for name, kind in batch.schema.items()
            if name in read
        }
        found = kept_columns(batch.rows, batch.schema, self._mapped, self._dataset)
        kept = {
            name: Typed(elements.of(one.column.array), one.column.kind)
            for name, one in found.items()
        }
        odd = {name: one for name, one in kept.items() if self._kept_as(name, one.kind) != one.kind}
        names = [*self._mapped.columns, *odd]
        wanted = [self._column(name) for name in self._mapped.columns]
        wanted += [Wanted(quote(_odd(name)), self._chooser(name, None), name) for name in odd]
        asked = f"{self._dataset.name}, a condition"
        conditions = (self._mapped.truncates, self._mapped.deletes, self._mapped.where)
        wanted += [
            Wanted(flat.text, lambda _: BOOLEAN, asked, is_condition=True)
            for flat in conditions
            if flat is not None
        ]
        rows = {**sources, **elements.columns, **{_odd(name): one for name, one in odd.items()}}
        values = computed(rows, self._places(), wanted, session)
        columns = dict(zip(names, values, strict=False))
        said = iter(values[len(names) :])
        truncates, deletes, where = (
            None if flat is None else pc.fill_null(next(said).column.array, fill_value=False)
            for flat in conditions
        )
        operations = self._operations(truncates, deletes)
        wanted_rows = self._wanted(where, operations)
        unsent, missing = self._unsent(found)
        faults = self._faults(columns, operations)
        if vain := self._asked_in_vain(missing, operations):
            faults |= vain
            of_vain = pa.array([row in vain for row in range(len(operations))], pa.bool_())
            wanted_rows = pc.or_(wanted_rows, of_vain)
        return _Rows(
            self._ordered({**kept, **{name: one.column for name, one in columns.items()}}),
            operations,
            wanted_rows,
            unsent,
            faults,
        )

    def _unsent(self, kept: Mapping[str, Kept]) -> tuple[pa.Array, dict[int, frozenset[str]]]:
        reads = {name: frozenset({one.source}) for name, one in kept.items()}
        reads |= {one.name: columns_read(one.expression) for one in self._dataset.mapping.columns}
        unsent = self._elements.of(self._batch.rows.column("__unsent"))
        return unsent_columns(unsent, reads, also=self._of_where)

    def _asked_in_vain(
        self, missing: Mapping[int, frozenset[str]], operations: pa.Array
    ) -> dict[int, str]:
        """Rows of which `where` cannot be told: to leave them out, or not, would be a guess."""
        found = {}
        for row, names in missing.items() if self._of_where else ():
            lacking = names & self._of_where
            if lacking and operations[row].as_py() not in self._exempt:
                found[row] = f"`where` reads {', '.join(sorted(lacking))}, which was not sent"
        return found

    def _column(self, name: str) -> Wanted:
        declared = self._dataset.events.columns.get(name)
        text = self._mapped.columns[name].text
        return Wanted(text, self._chooser(name, declared), f"{self._dataset.name}, column {name}")

    def _chooser(self, name: str, declared: DataType | None) -> Callable[[DataType], DataType]:
        known = self._before.table.get(name)

        def choose(kind: DataType) -> DataType:
            offered = kind if declared is None else declared
            if known is None or isinstance(known, Void):
                return offered
            # A column keeps its type when the new one cannot be reached in place.
            return widen(known, offered) or known

        return choose

    def _kept_as(self, name: str, kind: DataType) -> DataType:
        """The type of a column that is kept: what a change of the source makes of it stands."""
        source = self._before.source.get(name)
        if source is not None and widen(source, kind) is None:
            return kind
        return self._chooser(name, None)(kind)

    def _places(self) -> pa.Table:
        """What tells the rows apart."""
        rows, elements = self._batch.rows, self._elements
        files, offsets = (elements.of(rows.column(name)) for name in ("__file", "__offset"))
        numbers = elements.numbers
        if numbers is None:
            numbers = pa.array([0] * len(files), pa.int64())
        return pa.table({"__file": files, "__offset": offsets, "|number": numbers})

    def _operations(self, truncates: pa.Array | None, deletes: pa.Array | None) -> pa.Array:
        found: Any = self._elements.of(self._batch.rows.column("__op"))
        for said, operation in ((deletes, "D"), (truncates, "T")):
            found = found if said is None else pc.if_else(said, operation, found)
        return found

    def _wanted(self, where: pa.Array | None, operations: pa.Array) -> pa.Array:
        """Which rows stay: a delete that is not seen would leave its record for good."""
        if where is None:
            return pa.array([True] * len(operations), pa.bool_())
        exempt = pa.array(self._exempt, pa.string())
        return pc.or_(where, pc.is_in(operations, value_set=exempt))

    def _faults(self, columns: Mapping[str, Made], operations: pa.Array) -> dict[int, str]:
        """What is wrong with rows: the first of each. Of a delete only the key counts."""
        faults: dict[int, str] = {}
        for name, one in columns.items():
            for row, text in one.misfits.items():
                if name not in self._keys and operations[row].as_py() in self._exempt:
                    continue
                faults.setdefault(row, f"column {name}: {text!r} does not fit {one.column.kind}")
        return faults

    def _ordered(self, columns: Mapping[str, Typed]) -> dict[str, Typed]:
        """All columns: those of the table as it has them, then new ones, mapped before kept."""
        count = len(self._elements.of(self._batch.rows.column("__offset")))
        known = {
            name: columns.get(name) or nulls_of(kind, count)
            for name, kind in self._before.table.items()
        }
        listed = {name: columns[name] for name in self._mapped.columns}
        return {**known, **listed, **columns}

    def _refused(self, made: _Rows) -> dict[int, tuple[str, str]]:
        """The records that are set aside, by their index, with rule and error."""
        found: dict[int, tuple[str, str]] = {}
        records = self._elements.records
        for row, error in made.faults.items():
            if made.wanted[row].as_py():
                record = row if records is None else records[row].as_py()
                found.setdefault(record, (RULE, error))
        if records is None or self._appends:
            return found
        nameless: Any = pa.array([False] * len(made.wanted))
        for key in self._keys:
            nameless = pc.or_(nameless, pc.is_null(made.columns[key].array))
        judged = pc.and_(made.wanted, pc.not_equal(pc.fill_null(made.operations, "U"), "T"))
        for record in records.filter(pc.and_(nameless, judged)).to_pylist():
            found.setdefault(record, ("null_key", ERRORS["null_key"]))
        return found

    def _counters(self, left_out: int) -> dict[str, int]:
        before = dict(self._batch.counters)
        return {**before, FILTERED: before.get(FILTERED, 0) + left_out} if left_out else before

    def _met(self, columns: Mapping[str, Typed]) -> frozenset[str]:
        """Columns that settings may name: of the source and of the table."""
        met = self._batch.met
        if met is None:
            met = frozenset(self._batch.schema.keys() - self._dataset.mapping.declared.keys())
        return met | columns.keys() if met else met


def _odd(name: str) -> str:
    """How a kept column is called while it gets another type: as no column of a record is."""
    return f"|kept {name}"
