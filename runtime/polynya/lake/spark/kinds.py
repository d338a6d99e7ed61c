"""The types of Spark as those that all rooms share."""

from __future__ import annotations

from polynya.lake.spark.api import types as t
from polynya.model.datatypes import INT, Array, DataType, Decimal, MapType, Primitive, Struct, Void
from polynya.model.datatypes.types import PRIMITIVE_NAMES


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
