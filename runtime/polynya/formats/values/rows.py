"""Records of one dataset become typed columns, with at most one fault a record."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, TypeAlias

from polynya.formats.values.columns import Builder, Faults, TypedColumn, build
from polynya.formats.values.evolve import BatchColumn, Evolved, evolved
from polynya.formats.values.formatted import TimeFormat
from polynya.formats.values.names import (
    MAX_COLUMNS,
    TOO_MANY,
    NameSpace,
    column_problem,
    fitting,
    one_name_twice,
    reserved_problem,
)
from polynya.model.config.evolution import SchemaChange, SchemaEvolution
from polynya.model.promotion import is_rewritable, unify, widen
from polynya.model.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    Void,
)

Record: TypeAlias = dict[str, Any]

_TIMES: Final = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
#: How a column that the table does not get may change: whatever fits is taken, nobody is asked.
_UNASKED = SchemaEvolution(add_column="apply", widen_type="apply", incompatible_type="ignore")


@dataclass(frozen=True, slots=True)
class Evolving:
    """How the columns of a dataset may change.

    Attributes:
        policies: of the dataset.
        pinned: columns whose types the configuration declares; those never change.
        conflicts: types that the source declares now and that the known ones cannot become.
        columns: names in the newest schema that the source declared, None without one.
        excluded: columns that the table does not get. Nothing about them is a change.
    """

    policies: SchemaEvolution = field(default_factory=SchemaEvolution)
    pinned: Collection[str] = ()
    conflicts: Mapping[str, DataType] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    excluded: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """What is known about the types before the records are looked at.

    Attributes:
        known: columns of the dataset so far.
        declared: columns of the configuration; they do not follow the data.
        observed: types that the files themselves give (parquet schema, Debezium schema).
        evolving: how the columns may change.
        numbers: what columns that are inferred from numbers become, None: as the numbers say.
        wide: what a known column of whole numbers becomes when others come, None: they are refused.
        unlike: columns for which `numbers` and `wide` do not hold.
        formats: how declared columns of dates and times spell them, where it is not ISO 8601.
    """

    known: Mapping[str, DataType]
    declared: Mapping[str, DataType] = field(default_factory=dict)
    observed: Mapping[str, DataType] = field(default_factory=dict)
    evolving: Evolving = field(default_factory=Evolving)
    numbers: DataType | None = None
    wide: DataType | None = None
    unlike: Collection[str] = ()
    formats: Mapping[str, TimeFormat] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Every column that exists whether or not a record has it."""
        return list(dict.fromkeys([*self.known, *self.declared]))

    def before(self, name: str) -> DataType | None:
        """The type of a column before its values are seen."""
        kind = self.known.get(name)
        for source in (self.declared, self.observed):
            offered = source.get(name)
            if offered is not None and not isinstance(offered, Void):
                # A column keeps its type when the new one cannot be reached in place.
                kind = offered if kind is None else widen(kind, offered) or kind
        return kind

    def conflict(self, name: str) -> DataType | None:
        """The type that the source declares now, if the known one cannot become it."""
        known = self.known.get(name)
        offered = self.evolving.conflicts.get(name) or self.observed.get(name)
        if known is None or offered is None:
            return None
        return offered if widen(known, offered) is None else None


@dataclass(frozen=True, slots=True)
class TypedRecords:
    """Columns in the order of first sight, and for each bad record its first reason.

    `changes` is what the batch changes in what was known; `declared` names the columns of the
    newest schema of the source, None when it declares none. `met` are the columns that the records
    or the schemas really have.
    """

    columns: dict[str, TypedColumn]
    faults: Faults
    changes: tuple[SchemaChange, ...] = ()
    declared: tuple[str, ...] | None = None
    met: frozenset[str] = frozenset()

    def schema(self) -> dict[str, DataType]:
        """Name to type."""
        return {name: column.type for name, column in self.columns.items()}


def typed_records(
    records: Sequence[Record],
    types: ColumnTypes,
    builder: Builder = build,
    *,
    needed: Sequence[str] = (),
) -> TypedRecords:
    """Type every column of the records; columns of `needed` exist even when no record has them."""
    faults: Faults = {}
    met = dict.fromkeys(chain(types.observed, chain.from_iterable(records)))
    names = dict.fromkeys([*_column_names(records, met, types, faults), *needed])
    columns: dict[str, TypedColumn] = {}
    variants: dict[str, TypedColumn] = {}
    changes: list[SchemaChange] = []
    taken = _taken(records, types)
    for name in names:
        values = [record.get(name) for record in records]
        found = _typed(
            BatchColumn(name, values, types.known.get(name)), types, builder, needed, taken
        )
        changes += found.changes
        for made, column in found.columns.items():
            (columns if made == name else variants)[made] = column
            for index, (rule, error) in column.faults.items():
                if made == name:
                    faults.setdefault(index, (rule, f"column {name}: {error}"))
    left_out = _refuse_one_name_twice(records, types, columns, faults)
    for name in left_out:
        columns[name] = builder([None] * len(records), types.known.get(name))
        changes = [c for c in changes if c.column != name and not c.column.startswith(f"{name}.")]
        if name not in types.known and name not in needed:
            del columns[name]
    return TypedRecords(
        {**columns, **variants}, faults, tuple(changes), types.evolving.columns, frozenset(met)
    )


def _refuse_one_name_twice(
    records: Sequence[Record],
    types: ColumnTypes,
    columns: Mapping[str, TypedColumn],
    faults: Faults,
) -> list[str]:
    """Set records aside whose columns or fields have the name that others have in the table.

    Returns the columns that are as they are known, or not there: those of a schema that was
    declared, of which no record that is left has a value.
    """
    excluded = types.evolving.excluded
    schema = {name: one.type for name, one in columns.items() if name not in excluded}
    left_out = []
    for path, problem in one_name_twice(
        {name: kind for name, kind in types.known.items() if name not in excluded}, schema
    ):
        hit = [i for i, record in enumerate(records) if _has(record, path)]
        hit = hit or [i for i, record in enumerate(records) if record.get(path[0]) is not None]
        for index in hit:
            faults.setdefault(index, ("bad_column", problem))
        if not hit:
            left_out.append(path[0])
    return left_out


def _has(value: Any, path: Sequence[str]) -> bool:
    """Whether a value has a field, or an element has; `path` is that of Iceberg."""
    if not path:
        return True
    if isinstance(value, dict):
        if path[0] in value:
            return _has(value[path[0]], path[1:])
        inner: Collection[Any] = value.values() if path[0] == "value" else ()
    else:
        inner = value if isinstance(value, list | tuple) else ()
    return any(_has(one, path[1:]) for one in inner)


def _taken(records: Sequence[Record], types: ColumnTypes) -> frozenset[str]:
    """Names that a column for other types may not have; nobody asks unless there may be one."""
    if types.evolving.policies.policy("incompatible_type") != "apply":
        return frozenset()
    return frozenset(chain(types.observed, chain.from_iterable(records)))


def _typed(
    source: BatchColumn,
    types: ColumnTypes,
    builder: Builder,
    keys: Sequence[str],
    taken: Collection[str],
) -> Evolved:
    name, evolving = source.name, types.evolving
    before = types.before(name)
    spelled = types.formats.get(name)
    if spelled is not None and before in _TIMES:
        column = spelled.column(source.values, before)
    else:
        column = builder(source.values, before, declared=name in types.declared)
    if types.numbers is not None and (before is None or isinstance(before, Void)):
        column = _as_numbers(source, column, types, builder, types.numbers)
    if types.wide is not None and column.type == BIGINT and column.faults:
        column = _widened(source, column, types, builder, types.wide)
    column = _with_ways_out(name, column, types)
    if not types.known or name in evolving.pinned:
        return Evolved({name: column})
    source = replace(
        source,
        conflict=types.conflict(name),
        is_key=name in keys,
        taken=taken,
        siblings=types.known,
    )
    if name in evolving.excluded:
        return replace(evolved(source, column, builder, _UNASKED), changes=())
    return evolved(source, column, builder, evolving.policies)


def _as_numbers(
    source: BatchColumn, column: TypedColumn, types: ColumnTypes, builder: Builder, kind: DataType
) -> TypedColumn:
    """A new column with the type that the settings give to numbers, if it holds nothing else."""
    if source.name in types.unlike:
        return column
    is_text = column.type == STRING
    if not (is_text or column.type in {BIGINT, DOUBLE} or isinstance(column.type, Decimal)):
        return column
    numbers = builder(source.values, kind)
    # Text stays text unless all of it is numbers, such as 10.50 in CSV.
    return column if is_text and numbers.faults else numbers


def _widened(
    source: BatchColumn, column: TypedColumn, types: ColumnTypes, builder: Builder, kind: DataType
) -> TypedColumn:
    """A column of whole numbers as one of a wider type, if that holds more of the values."""
    name = source.name
    if name in types.declared or name in types.unlike or name in types.evolving.excluded:
        return column
    wider = builder(source.values, kind)
    return wider if wider.faults.keys() < column.faults.keys() else column


def _with_ways_out(name: str, column: TypedColumn, types: ColumnTypes) -> TypedColumn:
    """The column, with what can be done about numbers that do not fit one of whole numbers."""
    declared = types.declared.get(name)
    if column.type not in {BIGINT, INT} or not column.faults or declared == column.type:
        return column
    way = _way_out(name, column.type, declared)
    lacking = (f"does not fit {column.type}", "is not a whole number")
    faults = {
        index: (rule, f"{error}: {way}" if error.endswith(lacking) else error)
        for index, (rule, error) in column.faults.items()
    }
    return replace(column, faults=faults)


def _way_out(name: str, kind: DataType, declared: DataType | None) -> str:
    if declared is None:
        return (
            "the first numbers were whole. `schema_evolution: {widen_numbers: decimal}` lets such "
            "a number widen the column, `columns` with `polynya migrate` gives it a type; "
            "`polynya quarantine replay` then reads this record again. "
            "`schema_evolution: {incompatible_type: propagate}` takes such values into a column "
            f"{name}_double"
        )
    if is_rewritable(kind, declared):
        return (
            f"the declared {declared} takes writing the column again: `polynya migrate` does it, "
            "and `polynya quarantine replay` then reads this record again"
        )
    return (
        f"the declared {declared} cannot be reached; a dataset with a new `name` reads all that "
        "has landed with the declared types"
    )


def _column_names(
    records: Sequence[Record], met: Collection[str], types: ColumnTypes, faults: Faults
) -> list[str]:
    names = dict.fromkeys(types.names())
    space, excluded = NameSpace(names), frozenset(types.evolving.excluded)
    bad: dict[str, str] = {}
    new: list[str] = []
    for name in met:
        if name in names:
            continue
        problem = column_problem(name) or space.clash(name)
        if name not in excluded:
            problem = problem or reserved_problem(name)
        if problem:
            bad[name] = problem
        else:
            new.append(name)
    if bad:
        for index, record in enumerate(records):
            hit = next((name for name in record if name in bad), None)
            if hit is not None:
                faults[index] = ("bad_column", bad[hit])
    room = MAX_COLUMNS - sum(name not in excluded for name in names)
    if sum(name not in excluded for name in new) > room:
        wanted = frozenset(new).difference(excluded)
        found, beyond = fitting(records, wanted, room, faults)
        for index, name in beyond.items():
            faults[index] = ("bad_column", f"column {name!r}: {TOO_MANY}")
        new = [name for name in new if name in excluded or name in found]
    return [*names, *new]


@dataclass(slots=True)
class ObservedTypes:
    """Types that were declared so far.

    Attributes:
        types: by column, what holds the values of all schemas; the first where they contradict.
        conflicts: by column, the newest type that contradicts `types`.
        columns: names in the newest schema, None as long as none was declared.
    """

    types: dict[str, DataType] = field(default_factory=dict)
    conflicts: dict[str, DataType] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None

    def learn(self, types: Mapping[str, DataType], *, in_place: bool = False) -> None:
        """Take the schema of one more file; `in_place` joins types only as a table could."""
        if not types:
            return
        join = widen if in_place else unify
        for name, kind in types.items():
            joined = join(self.types.get(name, Void()), kind)
            if joined is None:
                self.conflicts[name] = kind
            else:
                self.types[name] = joined
        self.columns = tuple(types)

    def column_types(
        self,
        known: Mapping[str, DataType],
        declared: Mapping[str, DataType],
        policies: SchemaEvolution,
        *,
        excluded: Collection[str] = (),
    ) -> ColumnTypes:
        """What typing the records needs.

        `declared` are the types of the configuration, `excluded` the columns that it leaves out.
        """
        evolving = Evolving(
            policies, frozenset(declared), self.conflicts, self.columns, frozenset(excluded)
        )
        return ColumnTypes(known, declared, self.types, evolving)
