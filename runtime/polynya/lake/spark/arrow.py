"""Convert between Arrow and Spark: schemas, types and rows."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from polynya.lake.spark.api import DataFrame
from polynya.lake.spark.api import types as t
from polynya.model.types import (
    INT,
    PRIMITIVE_NAMES,
    Array,
    DataType,
    Decimal,
    MapType,
    Primitive,
    Struct,
    Void,
)
from polynya.observe.trace import span


def kind_of(spark: t.DataType) -> DataType:
    """One type of Spark; one that has no counterpart, such as an interval, counts as void."""
    if isinstance(spark, t.ByteType | t.ShortType):
        return INT
    if isinstance(spark, t.DecimalType):
        return Decimal(spark.precision, spark.scale)
    if isinstance(spark, t.ArrayType):
        return Array(kind_of(spark.elementType))
    if isinstance(spark, t.MapType):
        return MapType(kind_of(spark.keyType), kind_of(spark.valueType))
    if isinstance(spark, t.StructType):
        return Struct(tuple((field.name, kind_of(field.dataType)) for field in spark.fields))
    name = spark.simpleString()
    return Primitive(name) if name in PRIMITIVE_NAMES else Void()


_ALL_ROWS: Final = (1 << 63) - 1
_PLAIN: Final[dict[pa.DataType, t.DataType]] = {
    pa.bool_(): t.BooleanType(),
    pa.int32(): t.IntegerType(),
    pa.int64(): t.LongType(),
    pa.float32(): t.FloatType(),
    pa.float64(): t.DoubleType(),
    pa.string(): t.StringType(),
    pa.binary(): t.BinaryType(),
    pa.date32(): t.DateType(),
    pa.timestamp("us"): t.TimestampNTZType(),
    pa.timestamp("us", "UTC"): t.TimestampType(),
}


def spark_schema(schema: pa.Schema) -> t.StructType:
    """The schema of a landed batch for Spark; every field is nullable.

    PySpark has this too, but its version 4.1.4 takes every struct with a field `wkb` for a geometry
    of its own and fails on the points that Debezium sends.
    """
    return t.StructType([t.StructField(field.name, spark_type(field.type)) for field in schema])


def spark_type(arrow: pa.DataType) -> t.DataType:
    """One Arrow type; only those that `formats` makes."""
    if arrow in _PLAIN:
        return _PLAIN[arrow]
    if pa.types.is_decimal(arrow):
        return t.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_list(arrow):
        return t.ArrayType(spark_type(arrow.value_type))
    if pa.types.is_map(arrow):
        return t.MapType(spark_type(arrow.key_type), spark_type(arrow.item_type))
    if pa.types.is_struct(arrow):
        return t.StructType([t.StructField(f.name, spark_type(f.type)) for f in arrow])
    raise AssertionError(f"no column of a landed batch is a {arrow}")


@span("collect")
def collected_rows(rows: DataFrame) -> pa.Table:
    """All rows of a query whose columns have different names, without a job where Spark has them.

    A query over a few rows that were given to Spark is computed by the optimizer. `toArrow` starts
    a job all the same, which waits for a core while tasks of other datasets hold all of them.
    """
    plan: Any = rows._jdf.queryExecution().executedPlan()
    if plan.nodeName() != "LocalTableScan":
        return rows.toArrow()
    computed = plan.rows().iterator()
    if not computed.hasNext():
        return rows.toArrow()
    content = _converters(rows).toBatchWithSchemaIterator(
        computed, plan.schema(), _ALL_ROWS, _ALL_ROWS, "UTC", True, False  # noqa: FBT003 - a method of Java's
    )  # fmt: skip
    with pa.ipc.open_stream(content.next()) as stream:
        return stream.read_all()


def _converters(rows: DataFrame) -> Any:
    jvm: Any = rows.sparkSession._jvm
    return getattr(getattr(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters$"), "MODULE$")
