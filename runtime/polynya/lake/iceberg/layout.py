"""Create internal tables and let their columns grow: DDL and schema changes, nothing of rows."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from polynya.formats.values.names import schema_problem
from polynya.lake.iceberg.errors.catalog import refused_columns
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.spark.api import Py4JJavaError, PySparkException, SparkSession
from polynya.model.contract.headers import HEADERS, PARTITION
from polynya.model.contract.identifiers import literal, quote
from polynya.model.datatypes import Array, DataType, MapType, Struct, Void, storage_type, widen

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
    # Prior files are pruned by it when late events look for the versions around them.
    "write.metadata.metrics.column.hdr__change_identifier": "full",
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
            except (PySparkException, Py4JJavaError):
                if not spark.catalog.databaseExists(quoted):
                    raise


def create_table(
    spark: SparkSession, quoted: str, *, comment: str, format_version: int = 2
) -> None:
    """Create an internal table with header columns only; data columns come with the first batch.

    Version 2 of the format is what every engine reads (Athena cannot read 3).
    """
    columns = ", ".join(
        f"{quote(header.name)} {header.type}{' NOT NULL' if header.name == PARTITION else ''}"
        for header in HEADERS
    )
    given = {"format-version": str(format_version), **TABLE_PROPERTIES}
    properties = ", ".join(f"'{key}'='{value}'" for key, value in given.items())
    if spark.catalog.tableExists(quoted):
        return
    with _creating:
        try:
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS {quoted} ({columns}) USING iceberg "
                f"PARTITIONED BY ({quote(PARTITION)}) COMMENT {literal(comment)} "
                f"TBLPROPERTIES ({properties})"
            )
        except (PySparkException, Py4JJavaError):
            if not spark.catalog.tableExists(quoted):
                raise


def missing_bounds(properties: Mapping[str, str]) -> dict[str, str]:
    """What bounds the metadata of a new table and not of one with these properties.

    A value that somebody else has chosen stays.
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
        raise refused_columns(table.name, problem)
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
    found, wanted = (_IDS.sub("", str(one)) for one in (stored, _java_type(spark, kind)))
    return found == wanted


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
