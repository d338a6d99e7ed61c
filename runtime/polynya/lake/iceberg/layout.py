"""Create internal tables, grow their columns, and give them the layout that the dataset asks for.

The layout is the partition spec, the sort order and the file size. A change of layout changes only
metadata: existing files keep the spec that they were written with until maintenance rewrites them.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from polynya.formats.values.names import schema_problem
from polynya.lake.iceberg.partitions import Spec
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.wanted import SortOrder
from polynya.lake.spark import api
from polynya.model.config.dataset import TableLayout
from polynya.model.config.layout import PartitionTerm, RowRetention, SortTerm, age_refusal
from polynya.model.error_catalogue.configuration import UNSUITABLE_AGE_TYPE, UNSUITABLE_LAYOUT_TYPE
from polynya.model.error_catalogue.lake import IMPOSSIBLE_COLUMNS
from polynya.model.headers import HEADERS, PARTITION
from polynya.model.names import literal, quote
from polynya.model.promotion import storage_type, widen
from polynya.model.types import Array, DataType, MapType, Struct, Void

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession

log = logging.getLogger(__name__)

#: A name that no column of a source has: one that came later would break the table.
_PREFIX: Final = "hdr__by_"
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_FILE_SIZE: Final = "write.target-file-size-bytes"
DEFAULT_FILE_BYTES: Final = 128 * 2**20


@dataclass(frozen=True, slots=True)
class SpecChange:
    """Partition fields that a table gets, by their names, and names of those that it loses."""

    add: Mapping[str, PartitionTerm]
    remove: Sequence[str]

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)


def spec_change(
    wanted: Sequence[PartitionTerm],
    newest: Spec,
    ids: Mapping[str, int],
    schema: Mapping[str, DataType],
) -> SpecChange:
    """What the newest spec of a table lacks of the wanted terms, and has beside them.

    `ids` are those of the columns of the table, `schema` the types of the source's columns. A
    missing column, or one with NULLs only, has no field yet; nothing is removed before all have
    one.
    """
    there = [term for term in wanted if term.column in ids]
    there = [term for term in there if not isinstance(schema.get(term.column, Void()), Void)]
    own = [field for field in newest.fields if field.name != PARTITION]
    have = {(field.source, field.transform) for field in own}
    asked = {(ids[term.column], term.iceberg) for term in there}
    names = {field.name for field in newest.fields}
    add: dict[str, PartitionTerm] = {}
    for term in there:
        if (ids[term.column], term.iceberg) not in have:
            add[_name(term, ids[term.column], names | set(add))] = term
    whole = len(there) == len(wanted)
    remove = [field.name for field in own if (field.source, field.transform) not in asked]
    return SpecChange(add, remove if whole else [])


def lay_out(table: IcebergTable, layout: TableLayout, schema: Mapping[str, DataType]) -> None:
    """Bring a table in line with a layout; `schema` are the types of the columns of its source.

    Raises ConfigError when a column has a type that the layout has no use for.
    """
    refuse_types(layout, schema, table.name)
    ids = {column["name"]: column["id"] for column in table.columns()}
    change = spec_change(layout.partition_by, table.java_files().newest, ids, schema)
    if change:
        log.info(
            "the files of %s are partitioned by %s from now on", table.name, layout.partition_by
        )
        change_spec(table, change)
    change_sort_order(table, layout.sort_by, schema)
    change_file_size(table, layout.file_bytes)


def lacks(
    columns: Sequence[Mapping[str, Any]],
    newest: Spec,
    order: SortOrder,
    layout: TableLayout,
    schema: Mapping[str, DataType],
) -> bool:
    """Whether `lay_out` would give a table another partition spec or sort order. Pure.

    `columns` are those of the table, as Iceberg's specification writes them in JSON.
    """
    ids = {column["name"]: column["id"] for column in columns}
    change = spec_change(layout.partition_by, newest, ids, schema)
    return bool(change) or _lacks_order(columns, order, _plain(layout.sort_by), schema)


def refuse_types(layout: TableLayout, schema: Mapping[str, DataType], name: str) -> None:
    """Raise ConfigError when a column has a type that the layout cannot use."""
    terms: list[tuple[str, PartitionTerm | SortTerm, str]] = [
        ("partition_by", term, term.column) for term in layout.partition_by
    ]
    terms += [("sort_by", term, column) for term in layout.sort_by for column in term.columns]
    for setting, term, column in terms:
        kind = schema.get(column)
        if kind is None or isinstance(kind, Void):
            continue
        if reason := term.refusal(kind):
            raise UNSUITABLE_LAYOUT_TYPE(
                where=name, setting=setting, table=name, column=column, reason=reason, term=term
            )


def refuse_age(retention: RowRetention | None, schema: Mapping[str, DataType], name: str) -> None:
    """Raise ConfigError when rows should expire by a column that has no age."""
    kind = None if retention is None else schema.get(retention.column)
    if retention is None or kind is None or isinstance(kind, Void):
        return
    if reason := age_refusal(kind):
        raise UNSUITABLE_AGE_TYPE(where=name, table=name, column=retention.column, reason=reason)


def columns_in_use(table: IcebergTable) -> set[str]:
    """Names of columns that files are partitioned or sorted by, also by an older spec or order.

    Iceberg cannot read a file whose partition comes from a column that is gone.
    """
    made = table.iceberg
    specs = [
        Spec.of(str(made.PartitionSpecParser.toJson(spec))) for spec in table.java.specs().values()
    ]
    orders = [
        json.loads(made.SortOrderParser.toJson(order)) for order in table.java.sortOrders().values()
    ]
    used = {field.source for spec in specs for field in spec.fields}
    used |= {field["source-id"] for order in orders for field in order["fields"]}
    return {column["name"] for column in table.columns() if column["id"] in used}


def change_spec(table: IcebergTable, change: SpecChange) -> None:
    """Make the change, as evolution of the spec."""
    update = table.java.updateSpec()
    for name in change.remove:
        update.removeField(name)
    for name, term in change.add.items():
        update.addField(name, _expression(table, term))
    table.commit_change(update)


def change_sort_order(
    table: IcebergTable, wanted: Sequence[SortTerm], schema: Mapping[str, DataType]
) -> bool:
    """Give the table the sort order, if it has another; whether it had.

    It waits for the types of all its columns: one with only NULLs so far is replaced by the
    first value. Iceberg knows no Z-order: such a table has none.
    """
    terms = _plain(wanted)
    if not _lacks_order(table.columns(), table.java_files().order, terms, schema):
        return False
    update, nulls = table.java.replaceSortOrder(), table.iceberg.NullOrder
    for part in terms:
        term = table.iceberg.expressions.Expressions.ref(part.columns[0])
        if part.order == "asc":
            update.asc(term, nulls.NULLS_FIRST)
        else:
            update.desc(term, nulls.NULLS_LAST)
    table.commit_change(update)
    return True


def _plain(wanted: Sequence[SortTerm]) -> list[SortTerm]:
    return [term for term in wanted if term.order != "zorder"]


def _lacks_order(
    columns: Sequence[Mapping[str, Any]],
    order: SortOrder,
    terms: Sequence[SortTerm],
    schema: Mapping[str, DataType],
) -> bool:
    """Whether a table has another sort order, and all columns of this one with their types."""
    names = {column["name"] for column in columns}
    there = all(
        term.columns[0] in names and not isinstance(schema.get(term.columns[0], Void()), Void)
        for term in terms
    )
    return there and not order.is_by(columns, terms)


def change_file_size(table: IcebergTable, wanted: int | None) -> bool:
    """Give the table's files this size from now on, if they have another; whether they had."""
    size = str(wanted or DEFAULT_FILE_BYTES)
    if str(table.java.properties().get(_FILE_SIZE)) == size:
        return False
    table.commit_change(table.java.updateProperties().set(_FILE_SIZE, size))
    return True


def _name(term: PartitionTerm, number: int, taken: set[str]) -> str:
    """The name of a field: from that of its column, where it is plain and free."""
    ending = "" if term.transform == "identity" else f"_{term.transform}"
    if term.width is not None:
        ending += f"_{term.width}"
    name = f"{_PREFIX}{term.column}{ending}"
    if _PLAIN.fullmatch(term.column) and name not in taken:
        return name
    return f"{_PREFIX}{number}{ending}"


def _expression(table: IcebergTable, term: PartitionTerm) -> Any:
    """The term as Iceberg's Java side writes it."""
    made = table.iceberg.expressions.Expressions
    if term.transform == "identity":
        return made.ref(term.column)
    transform = getattr(made, term.transform)
    return transform(term.column) if term.width is None else transform(term.column, term.width)


#: Comment of a column that has only ever held NULL: its type is a guess until the first value
#: arrives.
UNTYPED = "polynya: no value seen yet"

TABLE_PROPERTIES: dict[str, str] = {
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": "1",
    "write.target-file-size-bytes": "134217728",
    "write.parquet.row-group-size-bytes": "33554432",
    # Identity partitioning with hash distribution would send all of Current to one task.
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    # Every commit writes the entries of all snapshots again, and they are much alike.
    "write.metadata.compression-codec": "gzip",
    # Prior files are pruned by it when late events look for the versions around them.
    "write.metadata.metrics.column.hdr__change_identifier": "full",
    # The bounds of hashes prune nothing, and no codec makes them smaller.
    "write.metadata.metrics.column.hdr__key_hash": "counts",
    "commit.retry.num-retries": "10",
    "commit.retry.min-wait-ms": "50",
    "commit.retry.max-wait-ms": "5000",
    "commit.retry.total-timeout-ms": "120000",
    # Every commit removes a state file, which any manifest may hold: it reads all that there are.
    "commit.manifest.min-count-to-merge": "8",
    "history.expire.min-snapshots-to-keep": "20",
}
#: Those of them that bound the metadata of a table, with the value that earlier versions gave.
_BOUNDS = {
    "write.metadata.delete-after-commit.enabled": None,
    "write.metadata.previous-versions-max": None,
    "commit.manifest.min-count-to-merge": "30",
}


#: "IF NOT EXISTS" looks first and creates then: two threads may both find nothing.
_creating = threading.Lock()
#: The ids of fields in the text of a nested type of Iceberg's.
_IDS = re.compile(r"\b\d+: ")


def create_namespaces(spark: SparkSession, paths: Iterable[str]) -> None:
    """Create the namespaces that do not exist. Another process may do the same at this moment.

    `paths` are quoted, with their catalog.
    """
    with _creating:
        for quoted in paths:
            if spark.catalog.databaseExists(quoted):
                continue
            try:
                spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted}")
            except (api.PySparkException, api.Py4JJavaError):
                if not spark.catalog.databaseExists(quoted):
                    raise


def create_table(
    spark: SparkSession,
    quoted: str,
    *,
    comment: str,
    format_version: int = 2,
    allowed: Callable[[], None] = lambda: None,
) -> None:
    """Create an internal table with header columns only; data columns come with the first batch.

    `allowed` is called before it is made, and may refuse by raising. Version 2 of the format is
    what every engine reads (Athena cannot read 3).
    """
    columns = ", ".join(
        f"{quote(header.name)} {header.type}{' NOT NULL' if header.name == PARTITION else ''}"
        for header in HEADERS
    )
    given = {"format-version": str(format_version), **TABLE_PROPERTIES}
    properties = ", ".join(f"'{key}'='{value}'" for key, value in given.items())
    if spark.catalog.tableExists(quoted):
        return
    allowed()
    with _creating:
        try:
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS {quoted} ({columns}) USING iceberg "
                f"PARTITIONED BY ({quote(PARTITION)}) COMMENT {literal(comment)} "
                f"TBLPROPERTIES ({properties})"
            )
        except (api.PySparkException, api.Py4JJavaError):
            if not spark.catalog.tableExists(quoted):
                raise


def missing_bounds(properties: Mapping[str, str]) -> dict[str, str]:
    """What bounds the metadata of a new table and not of one with these properties.

    A value that was set elsewhere stays.
    """
    return {
        name: TABLE_PROPERTIES[name]
        for name, former in _BOUNDS.items()
        if properties.get(name) in (None, former)
    }


def grow_columns(
    spark: SparkSession,
    table: IcebergTable,
    before: Mapping[str, DataType],
    after: Mapping[str, DataType],
) -> bool:
    """Make the table hold the columns of `after`; `before` is what it holds.

    Returns whether anything changed. Only what loses nothing: new nullable columns, also nested,
    and Iceberg's promotions. A column or a field that has only held NULL is replaced by one of the
    real type: all its rows stay NULL, which is what they were. Each change `is_in_place`.
    Raises OperationError for names that a table cannot have.
    """
    changed = {name: new for name, new in after.items() if before.get(name) != new}
    if not changed:
        return False
    problem = schema_problem(before, after)
    if problem is not None:
        raise IMPOSSIBLE_COLUMNS(where=table.name, why=problem, table=table.name)
    update = table.java.updateSchema()
    growth = _Growth(spark, table.java.schema(), update)
    for name, new in changed.items():
        old = before.get(name)
        if old is None:
            update.addColumn(
                None, name, _java_type(spark, new), UNTYPED if isinstance(new, Void) else None
            )
        elif isinstance(old, Void):
            update.deleteColumn(name)
            update.addColumn(None, name, _java_type(spark, new), None)
        else:
            merged = widen(old, new)
            if merged is None:
                raise AssertionError(f"column {name}: {old} cannot become {new}")
            _widen_column(growth, name, old, merged)
    table.commit_change(update)
    return True


def with_types(spark: SparkSession, table: IcebergTable, types: Mapping[str, DataType]) -> Any:
    """A Java `Transaction` in which columns are replaced by new ones of other types.

    Each has the name and the place of the one before it, and no values. Nothing is committed.
    """
    transaction = table.java.newTransaction()
    update = transaction.updateSchema()
    before: str | None = None
    for name in [column["name"] for column in table.columns()]:
        if name in types:
            update.deleteColumn(name)
            update.addColumn(None, name, _java_type(spark, types[name]), None)
            assert before is not None, "the header columns are first"
            update.moveAfter(name, before)
        before = name
    update.commit()
    return transaction


def without_columns(table: IcebergTable, names: Collection[str]) -> Any:
    """A Java `Transaction` in which the table loses these columns. Nothing is committed."""
    transaction = table.java.newTransaction()
    update = transaction.updateSchema()
    for name in sorted(table.column_names() & {*names}):
        update.deleteColumn(name)
    update.commit()
    return transaction


def is_stored_as(spark: SparkSession, table: IcebergTable, name: str, kind: DataType) -> bool:
    """Whether the table has a column of this name and type, whatever the ids inside of it."""
    if name not in table.column_names():
        return False
    stored = table.java.schema().asStruct().field(name).type()
    stored_type, wanted = (_IDS.sub("", str(one)) for one in (stored, _java_type(spark, kind)))
    return stored_type == wanted


@dataclass(frozen=True, slots=True)
class _Growth:
    """An `UpdateSchema`, and the schema that it begins with."""

    spark: SparkSession
    schema: Any
    update: Any

    def add(self, path: str, member: str, kind: DataType) -> None:
        """Add a field, in place of one of this name."""
        if self.schema.findField(f"{path}.{member}") is not None:
            self.update.deleteColumn(f"{path}.{member}")
        self.update.addColumn(path, member, _java_type(self.spark, kind), None)


def _widen_column(growth: _Growth, path: str, old: DataType, new: DataType) -> None:
    """Apply one promotion, descending into structs, arrays and maps."""
    if storage_type(old) == storage_type(new):
        return
    match old, new:
        case Struct(old_members), Struct(new_members):
            _widen_struct(growth, path, dict(old_members), new_members)
        case Array(old_element), Array(new_element):
            _widen_column(growth, f"{path}.element", old_element, new_element)
        case MapType(_, old_value), MapType(_, new_value):
            _widen_column(growth, f"{path}.value", old_value, new_value)
        case _:
            growth.update.updateColumn(path, _java_type(growth.spark, new))


def _widen_struct(
    growth: _Growth,
    path: str,
    known: Mapping[str, DataType],
    members: Iterable[tuple[str, DataType]],
) -> None:
    before: str | None = None
    for member, kind in members:
        inner = f"{path}.{member}"
        old = known.get(member)
        if old is None:
            # One that is there is of a step that was killed before the state knew of it: NULL.
            growth.add(path, member, kind)
        elif isinstance(old, Void) and storage_type(old) != storage_type(kind):
            growth.add(path, member, kind)
            # Rows are written by the order of the type as it is known.
            if before is None:
                growth.update.moveFirst(inner)
            else:
                growth.update.moveAfter(inner, before)
        else:
            _widen_column(growth, inner, old, kind)
        before = inner


def _java_type(spark: SparkSession, datatype: DataType) -> Any:
    """Iceberg's Java type, converted from the Spark spelling by Iceberg itself."""
    jvm: Any = spark._jvm
    stored = storage_type(datatype)
    spark_type = jvm.org.apache.spark.sql.types.DataType.fromDDL(str(stored))
    converted = jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(spark_type)
    # For a struct py4j picks the overload that makes a whole schema of it.
    return converted.asStruct() if isinstance(stored, Struct) else converted
