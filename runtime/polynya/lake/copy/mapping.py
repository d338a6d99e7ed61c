"""Map a batch: its columns as they were read become the columns of its table (docs/mapping.md).

Keys, former keys and the names of unsent columns are mapped with the values. Rows keep their
positions in the files and in the order of events; the rows of an array get consecutive positions.
A record is rejected whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import OLD_KEY_FIELD, SERVICE_FIELDS, DatasetBatch, Rejected
from polynya.formats.values.arrow import no_old_keys
from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.copy.mapped_values import Elements, Typed, elements_of, nulls_of, one_array
from polynya.lake.copy.masks import RuleMasks, Secrets, no_secrets
from polynya.lake.copy.rows import ERRORS
from polynya.lake.copy.values import Made, Session, WantedValue, computed
from polynya.lake.table.state import SourceColumns
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.error_catalogue.expressions import MAPPED_NAME_TAKEN, SOURCE_KEY_NOT_MAPPED
from polynya.model.headers import ALL_BUT, READ, RESERVED_PREFIX
from polynya.model.names import folded, quote, shown
from polynya.model.promotion import widen
from polynya.model.types import BOOLEAN, DataType, Struct, Void, parse_type
from polynya.observe.trace import span
from polynya.transform.expressions import expression_columns, path_of
from polynya.transform.mapping import Mapped, columns_read, mapped
from polynya.transform.rules import ResolvedRules, resolve

#: Rule of a record with a value that its column cannot hold.
RULE: Final = "mapping"
#: Reason under which the books count what `where` leaves out.
FILTERED: Final = "where"
#: Reason under which they count elements of one key in one record, but for the last of them.
REPEATED: Final = "repeated"


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
    batch: DatasetBatch,
    dataset: ResolvedDataset,
    before: Before,
    session: Session,
    secrets: Secrets = no_secrets,
) -> DatasetBatch:
    """The batch with the columns of the table; the same where nothing is mapped.

    `session` is asked only for expressions that take Spark, `secrets` for keys of hashes. Raises
    ConfigError POLYNYA-MAP-001, -005 and -006 for a mapping that cannot be computed, and as
    `resolve` and `RuleMasks.masked` for rules.
    """
    if not dataset.mapping.is_set:
        return batch
    ruled = resolve(dataset, {**before.source, **batch.schema})
    masks = RuleMasks(dataset.relations.current, ruled.masks, secrets)
    return _Mapping(batch, ruled, before, mapped(ruled.dataset), masks).done(session)


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
        self,
        batch: DatasetBatch,
        ruled: ResolvedRules,
        before: Before,
        mapped: Mapped,
        masks: RuleMasks,
    ) -> None:
        self._batch = batch
        dataset = self._dataset = ruled.dataset
        self._order = ruled.order
        self._before = before
        self._mapped = mapped
        self._masks = masks
        self._keys = keys_of(batch, dataset)
        masks.refuse_keys(self._keys)
        self._appends = dataset.kept.mode == "append_only" or not self._keys
        #: Operations that no condition leaves out.
        self._exempt = ["T"] if self._appends else ["T", "D"]
        where = dataset.mapping.where
        self._within = () if self._appends else dataset.kept.replaced_within
        self._of_where = frozenset() if where is None else columns_read(where)
        self._elements = (
            Elements(None, None, {})
            if mapped.array is None
            else elements_of(batch.rows, batch.schema, mapped.array)
        )

    def done(self, session: Session) -> DatasetBatch:
        """The batch of what the mapping makes."""
        made = self._made(session)
        records = self._elements.records
        refused = self._refused(made)
        repeated = self._repeated(made)
        kept = made.wanted
        if refused:
            bad: Any = pa.array([index in refused for index in range(self._batch.rows.num_rows)])
            of_bad = bad if records is None else bad.take(records)
            kept = pc.and_(kept, pc.invert(of_bad))
            repeated = pc.and_(repeated, pc.invert(of_bad))
            filtered = pc.and_(pc.invert(made.wanted), pc.invert(of_bad))
        else:
            filtered = pc.invert(made.wanted)
        stays = pc.and_(kept, pc.invert(repeated))
        reasons = {FILTERED: _count(filtered), REPEATED: _count(repeated)}
        left_out = sum(reasons.values())
        rejected = with_refused(self._batch, refused)
        schema = {name: column.kind for name, column in made.columns.items()}
        old = former_keys(
            self._batch,
            self._dataset,
            self._elements,
            {key: schema[key] for key in self._keys},
            self._masks,
        )
        computed = {"__op": made.operations, "__unsent": made.unsent, OLD_KEY_FIELD: old}
        # What replaces the elements of a record, and these, have one place.
        numbers = None if self._within else self._elements.numbers
        rows = rows_of(self._batch, self._elements, made.columns, computed, numbers)
        rows = (
            self._with_records(rows, schema, stays, kept)
            if self._within
            else kept_rows(rows, stays)
        )
        return replace(
            self._batch,
            rows=rows,
            schema=schema,
            keys=self._keys,
            rejected=rejected,
            rows_in=rows.num_rows + len(rejected) + self._batch.rows_filtered + left_out,
            rows_filtered=self._batch.rows_filtered + left_out,
            counters=self._counters(reasons),
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
        sources_kept = kept_columns(batch.rows, batch.schema, self._mapped, self._dataset)
        kept = {
            name: Typed(elements.of(column.column.array), column.column.kind)
            for name, column in sources_kept.items()
        }
        odd = {
            name: column
            for name, column in kept.items()
            if self._kept_as(name, column.kind) != column.kind
        }
        names = [*self._mapped.columns, *odd]
        wanted = [self._column(name) for name in self._mapped.columns]
        wanted += [WantedValue(quote(_odd(name)), self._chooser(name, None), name) for name in odd]
        asked = f"{self._dataset.name}, a condition"
        conditions = (self._mapped.truncates, self._mapped.deletes, self._mapped.where)
        wanted += [
            WantedValue(flat.text, lambda _: BOOLEAN, asked, is_condition=True)
            for flat in conditions
            if flat is not None
        ]
        rows = {
            **sources,
            **elements.columns,
            **{_odd(name): column for name, column in odd.items()},
        }
        values = computed(rows, self._places(), wanted, session)
        columns = dict(zip(names, values, strict=False))
        for name in self._masks.rules:
            column = self._masks.masked(name, columns[name].column, self._before.table.get(name))
            columns[name] = replace(columns[name], column=column)
        results = iter(values[len(names) :])
        truncates, deletes, where = (
            None if flat is None else pc.fill_null(next(results).column.array, fill_value=False)
            for flat in conditions
        )
        operations = self._operations(truncates, deletes)
        wanted_rows = self._wanted(where, operations)
        unsent, missing = self._unsent(sources_kept)
        faults = self._faults(columns, operations)
        if vain := self._uncomputable_where(missing, operations):
            faults |= vain
            of_vain = pa.array([row in vain for row in range(len(operations))], pa.bool_())
            wanted_rows = pc.or_(wanted_rows, of_vain)
        return _Rows(
            self._ordered({**kept, **{name: column.column for name, column in columns.items()}}),
            operations,
            wanted_rows,
            unsent,
            faults,
        )

    def _unsent(
        self, kept: Mapping[str, SourcedColumn]
    ) -> tuple[pa.Array, dict[int, frozenset[str]]]:
        reads = {name: frozenset({column.source}) for name, column in kept.items()}
        reads |= {
            column.name: columns_read(column.expression) for column in self._dataset.mapping.columns
        }
        unsent = self._elements.of(self._batch.rows.column("__unsent"))
        return unsent_columns(unsent, reads, also=self._of_where)

    def _uncomputable_where(
        self, missing: Mapping[int, frozenset[str]], operations: pa.Array
    ) -> dict[int, str]:
        """Rows whose `where` cannot be computed: to filter them, or not, would be a guess."""
        faults = {}
        for row, names in missing.items() if self._of_where else ():
            lacking = names & self._of_where
            if lacking and operations[row].as_py() not in self._exempt:
                faults[row] = f"`where` reads {', '.join(sorted(lacking))}, which was not sent"
        return faults

    def _column(self, name: str) -> WantedValue:
        declared = self._dataset.events.columns.get(name)
        text = self._mapped.columns[name].text
        return WantedValue(
            text, self._chooser(name, declared), f"{self._dataset.name}, column {name}"
        )

    def _chooser(self, name: str, declared: DataType | None) -> Callable[[DataType], DataType]:
        # What is masked gets its own type first: the table has that of the mask.
        stored_type = None if name in self._masks.rules else self._before.table.get(name)

        def choose(kind: DataType) -> DataType:
            offered = kind if declared is None else declared
            if stored_type is None or isinstance(stored_type, Void):
                return offered
            # A column keeps its type when the new one cannot be reached in place.
            return widen(stored_type, offered) or stored_type

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
        operations: Any = self._elements.of(self._batch.rows.column("__op"))
        for condition, operation in ((deletes, "D"), (truncates, "T")):
            operations = (
                operations if condition is None else pc.if_else(condition, operation, operations)
            )
        return operations

    def _wanted(self, where: pa.Array | None, operations: pa.Array) -> pa.Array:
        """Which rows stay: a delete that is not seen would leave its record for good."""
        if where is None:
            return pa.array([True] * len(operations), pa.bool_())
        exempt = pa.array(self._exempt, pa.string())
        return pc.or_(where, pc.is_in(operations, value_set=exempt))

    def _faults(self, columns: Mapping[str, Made], operations: pa.Array) -> dict[int, str]:
        """What is wrong with rows: the first of each. Of a delete only the key counts."""
        faults: dict[int, str] = {}
        for name, column in columns.items():
            for row, text in column.misfits.items():
                if name not in self._keys and operations[row].as_py() in self._exempt:
                    continue
                # A shifted line has masked values in any column.
                value = "a value" if self._dataset.withholds else repr(text)
                faults.setdefault(row, f"column {name}: {value} does not fit {column.column.kind}")
        return faults

    def _ordered(self, columns: Mapping[str, Typed]) -> dict[str, Typed]:
        """All columns: those of the table as it has them, then new ones, mapped before kept."""
        count = len(self._elements.of(self._batch.rows.column("__offset")))
        positions = {
            name: columns.get(name) or nulls_of(kind, count)
            for name, kind in self._before.table.items()
        }
        listed = {name: columns[name] for name in self._mapped.columns}
        in_order = {name: columns[name] for name in self._order if name in columns}
        return {**positions, **in_order, **listed, **columns}

    def _refused(self, made: _Rows) -> dict[int, tuple[str, str]]:
        """The records that are set aside, by their index, with rule and error."""
        rejects: dict[int, tuple[str, str]] = {}
        records = self._elements.records
        for row, error in made.faults.items():
            if made.wanted[row].as_py():
                record = row if records is None else records[row].as_py()
                rejects.setdefault(record, (RULE, error))
        if records is None or self._appends:
            return rejects
        nameless: Any = pa.array([False] * len(made.wanted), pa.bool_())
        for key in self._keys:
            lacks = pc.is_null(made.columns[key].array)
            if self._within and key not in self._within:
                # Where there is no element, there is none of its keys.
                lacks = pc.and_(lacks, pc.invert(self._elements.without))
            nameless = pc.or_(nameless, lacks)
        judged = pc.and_(made.wanted, pc.not_equal(pc.fill_null(made.operations, "U"), "T"))
        for record in records.filter(pc.and_(nameless, judged)).to_pylist():
            rejects.setdefault(record, ("null_key", ERRORS["null_key"]))
        return rejects

    def _with_records(
        self, rows: pa.Table, schema: Mapping[str, DataType], stays: pa.Array, kept: pa.Array
    ) -> pa.Table:
        """The elements that stay, then a row for each record that is `kept`, which replaces them.

        That row is a delete with the keys of the record and without those of an element. A record
        that is a truncate needs none.
        """
        assert self._elements.numbers is not None, "validate asks for an array"
        truncates = pc.fill_null(pc.equal(rows.column("__op"), "T"), fill_value=False)
        nameless: Any = pa.array([False] * rows.num_rows, pa.bool_())
        for key in self._keys:
            nameless = pc.or_(nameless, pc.is_null(rows.column(key)))
        # A record that is deleted has no elements: what it lists need not be there.
        deletes = pc.fill_null(pc.equal(rows.column("__op"), "D"), fill_value=False)
        absent = pc.or_(pc.and_(self._elements.without, nameless), deletes)
        absent = pc.and_(absent, pc.invert(truncates))
        first = pc.and_(pc.equal(self._elements.numbers, 0), pc.invert(truncates))
        records = kept_rows(rows, pc.and_(kept, first))
        emptied = {name for name in schema if name not in self._within} | {"__unsent"}
        for index, field in enumerate(records.schema):
            if field.name in emptied:
                nulls = pa.nulls(records.num_rows, field.type)
                records = records.set_column(index, field, nulls)
            elif field.name == "__op":
                deletes = pa.array(["D"] * records.num_rows, field.type)
                records = records.set_column(index, field, deletes)
        elements = kept_rows(rows, pc.and_(stays, pc.invert(absent)))
        return pa.concat_tables([elements, records])

    def _counters(self, reasons: Mapping[str, int]) -> dict[str, int]:
        counters = dict(self._batch.counters)
        for reason, count in reasons.items():
            if count:
                counters[reason] = counters.get(reason, 0) + count
        return counters

    def _repeated(self, made: _Rows) -> pa.Array:
        """Elements whose key the same record has again later, where a record is one state."""
        count = len(made.wanted)
        if not self._within or self._elements.records is None:
            return pa.array([False] * count, pa.bool_())
        places = pa.table(
            {
                "|record": self._elements.records,
                "|row": pa.arange(0, count),
                **{name: made.columns[name].array for name in self._keys},
            }
        )
        wanted = places.filter(made.wanted)
        grouped = wanted.group_by(["|record", *self._keys], use_threads=False)
        last = grouped.aggregate([("|row", "max")]).column("|row_max")
        among = pc.is_in(places.column("|row"), value_set=last).combine_chunks()
        return pc.and_(made.wanted, pc.invert(among))

    def _met(self, columns: Mapping[str, Typed]) -> frozenset[str]:
        """Columns that settings may name: of the source and of the table."""
        met = self._batch.met
        if met is None:
            met = frozenset(self._batch.schema.keys() - self._dataset.mapping.declared.keys())
        return met | columns.keys() if met else met


def _count(chosen: pa.Array) -> int:
    return int(pc.sum(chosen).as_py() or 0)


def _odd(name: str) -> str:
    """How a kept column is called while it gets another type: as no column of a record is."""
    return f"|kept {name}"


def keys_of(batch: DatasetBatch, dataset: ResolvedDataset) -> tuple[str, ...]:
    """The key columns of the table: those of the settings, else what the source's are called there.

    Raises ConfigError POLYNYA-MAP-007 when a key of the source is not in the table.
    """
    if dataset.events.keys:
        return dataset.events.keys
    keys = []
    for source in batch.keys:
        name = dataset.mapping.of_table(source)
        if name is None or name in dataset.events.except_columns:
            raise SOURCE_KEY_NOT_MAPPED(where=dataset.relations.current, column=shown(source))
        keys.append(name)
    return tuple(keys)


def former_keys(
    batch: DatasetBatch,
    dataset: ResolvedDataset,
    elements: Elements,
    schema: Mapping[str, DataType],
    masks: RuleMasks,
) -> pa.Array:
    """The column `__old` in the names and types of the table; `schema` is that of its keys."""
    keys = tuple(schema)
    column = one_array(batch.rows.column(OLD_KEY_FIELD))
    sources = dataset.mapping.of_source(keys)
    nothing = no_old_keys(keys, schema, len(elements.of(column))).array
    if column.null_count == len(column) or len(sources) != len(keys):
        return nothing
    fields = []
    for key, source in zip(keys, sources, strict=True):
        former = pc.struct_field(column, [column.type.get_field_index(source)])
        if key in masks.rules:
            former = masks.masked(key, Typed(former, batch.schema[source]), schema[key]).array
        fields.append(former.cast(arrow_type(schema[key])))
    mask = pc.is_null(column)
    made = pa.StructArray.from_arrays(fields, fields=list(nothing.type), mask=mask)
    return elements.of(made)


def unsent_columns(
    unsent: pa.Array, reads: Mapping[str, frozenset[str]], *, also: frozenset[str]
) -> tuple[pa.Array, dict[int, frozenset[str]]]:
    """The column `__unsent` in the names of the table, and columns of the source not sent, by row.

    `reads` has the columns of the source that each column of the table is made of: it was not sent
    when one of them was not. Where a source says what it sent, so does the result. `also` are other
    columns of the source that the mapping reads.
    """
    if unsent.null_count == len(unsent):
        return unsent, {}
    names_known = also.union(*reads.values())
    made: dict[tuple[str, ...], list[str]] = {}
    missing: dict[int, frozenset[str]] = {}
    lists: list[list[str] | None] = []
    for row, names in enumerate(unsent.to_pylist()):
        if not names:
            lists.append(names)
            continue
        lacking = _lacking(names, names_known)
        missing[row] = lacking
        if tuple(names) not in made:
            made[tuple(names)] = _named_columns(names, lacking, reads)
        lists.append(made[tuple(names)] or None)
    return pa.array(lists, unsent.type), missing


def _lacking(names: Collection[str], sent: frozenset[str]) -> frozenset[str]:
    return sent - set(names) if ALL_BUT in names else frozenset(names)


def _named_columns(
    names: Collection[str], lacking: frozenset[str], reads: Mapping[str, frozenset[str]]
) -> list[str]:
    sent = [name for name, sources in reads.items() if not sources & lacking]
    if ALL_BUT in names:
        return [ALL_BUT, *sent]
    mark = [READ] if READ in names else []
    return [*mark, *(name for name in reads if name not in sent)]


def rows_of(
    batch: DatasetBatch,
    elements: Elements,
    columns: Mapping[str, Typed],
    computed: Mapping[str, pa.Array],
    numbers: pa.Array | None,
) -> pa.Table:
    """Service columns of a batch for each row, but for those of `computed`, then these columns.

    `numbers` put the rows of a record one after the other; None leaves them in one place. Raw bytes
    are left out where a record is several rows: `raw_of` has them.
    """
    schema = {name: column.kind for name, column in columns.items()}
    plain = batch.rows
    if elements.records is not None:
        place = plain.column_names.index("__raw")
        plain = plain.set_column(place, "__raw", pa.nulls(plain.num_rows, pa.binary()))
    service = {field.name: elements.of(plain.column(field.name)) for field in SERVICE_FIELDS}
    service["__tail"] = _tails(service["__tail"], numbers)
    service |= {name: computed[name] for name in service if name in computed}
    old = computed[OLD_KEY_FIELD]
    fields = [
        *SERVICE_FIELDS,
        pa.field(OLD_KEY_FIELD, old.type),
        *(pa.field(name, arrow_type(kind)) for name, kind in schema.items()),
    ]
    values = [*service.values(), old, *(column.array for column in columns.values())]
    return pa.Table.from_arrays(values, schema=pa.schema(fields))


def kept_rows(rows: pa.Table, stays: pa.Array) -> pa.Table:
    """The rows that stay."""
    kept = rows.filter(stays)
    # A filter that keeps nothing leaves columns without a chunk, which Spark does not take.
    return kept if kept.num_rows else kept.schema.empty_table()


def raw_of(batch: DatasetBatch) -> Callable[[str, int], bytes]:
    """Gives the raw bytes of a record of a batch, by its file and offset."""
    if batch.raw_of is not None:
        return batch.raw_of

    @cache
    def rows() -> dict[tuple[str, int], int]:
        files, offsets = (batch.rows.column(n).to_pylist() for n in ("__file", "__offset"))
        return {position: row for row, position in enumerate(zip(files, offsets, strict=True))}

    def raw(file: str, offset: int) -> bytes:
        return batch.rows.column("__raw")[rows()[file, offset]].as_py() or b""

    return raw


def _tails(tails: pa.Array, numbers: pa.Array | None) -> pa.Array:
    """Rows of one record stand one after the other, and before the next record.

    `!` sorts before everything that a source's tail has.
    """
    if numbers is None:
        return tails
    digits = pc.utf8_lpad(numbers.cast(pa.string()), 10, "0")
    later = pc.binary_join_element_wise(pc.fill_null(tails, ""), digits, "!")
    return pc.if_else(pc.equal(numbers, 0), tails, later)


def with_refused(
    batch: DatasetBatch, refused: Mapping[int, tuple[str, str]]
) -> tuple[Rejected, ...]:
    """The rejected records of a batch with more of its records, by index with rule and error."""
    if not refused:
        return batch.rejected
    wanted = pa.array([index in refused for index in range(batch.rows.num_rows)])
    rows = batch.with_raw(wanted).select(["__file", "__offset", "__raw"]).filter(wanted)
    added = [
        Rejected(row["__file"], row["__offset"], *refused[index], row["__raw"] or b"")
        for index, row in zip(sorted(refused), rows.to_pylist(), strict=True)
    ]
    order = {path: index for index, path in enumerate(batch.files)}
    both = [*batch.rejected, *added]
    return tuple(sorted(both, key=lambda record: (order.get(record.file, -1), record.offset)))


@dataclass(frozen=True, slots=True)
class SourcedColumn:
    """A column, and the one of the source that it is, or that its field is of."""

    column: Typed
    source: str


def kept_columns(
    rows: pa.Table, schema: Mapping[str, DataType], mapped: Mapped, dataset: ResolvedDataset
) -> dict[str, SourcedColumn]:
    """What is kept of the columns of records, by the name that it has in the table.

    Not those that are excepted, header columns, an array whose elements are rows, and what a mapped
    column only gives another name. Raises ConfigError POLYNYA-MAP-006 for two of one name.
    """
    renamed = _renamed(mapped) | dataset.mapping.left_out
    taken = {folded(name) for name in mapped.columns}
    excepted = set(dataset.events.except_columns)
    kept: dict[str, SourcedColumn] = {}
    for name, kind in schema.items():
        if name in excepted or folded(name).startswith(RESERVED_PREFIX):
            continue
        column = Typed(one_array(rows.column(name)), kind)
        if dataset.mapping.nested == "expand":
            _expand((name,), column, renamed, taken, kept)
        elif (name,) not in renamed and folded(name) not in taken:
            kept[name] = SourcedColumn(column, name)
    return kept


def _renamed(mapped: Mapped) -> set[tuple[str, ...]]:
    """Paths of columns and fields that are in the table under another name, or as rows."""
    plain = (path_of(flat.text) for flat in mapped.columns.values() if not flat.paths)
    paths = {path for path in plain if path is not None}
    return paths if mapped.array is None else {*paths, mapped.array.steps[0]}


def _expand(
    path: tuple[str, ...],
    column: Typed,
    renamed: Collection[tuple[str, ...]],
    taken: Collection[str],
    kept: dict[str, SourcedColumn],
) -> None:
    """Take a column, or all fields of a struct; of an unknown type, nothing yet."""
    if path in renamed or isinstance(column.kind, Void):
        return
    if isinstance(column.kind, Struct):
        for index, (field, kind) in enumerate(column.kind.fields):
            inner = Typed(pc.struct_field(column.array, [index]), kind)
            _expand((*path, field), inner, renamed, taken, kept)
        return
    name = "_".join(path)
    if folded(name) in taken:
        return
    if folded(name) in set(map(folded, kept)):
        raise MAPPED_NAME_TAKEN(where=".".join(path), column=shown(name))
    kept[name] = SourcedColumn(column, path[0])
