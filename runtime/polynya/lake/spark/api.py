"""The only import of PySpark and py4j: every name of theirs that Polynya uses.

A module that needs another name adds it here, so that one file shows what a change of Spark can
break.
"""

from __future__ import annotations

from py4j.clientserver import JavaClient
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import StorageLevel, TaskContext, java_gateway
from pyspark.accumulators import AccumulatorParam
from pyspark.core import context as context_module
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import Column, DataFrame, Observation, SparkSession, functions, types
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

__all__ = [
    "AccumulatorParam",
    "CapturedException",
    "Column",
    "DataFrame",
    "JavaClient",
    "JavaObject",
    "Observation",
    "Py4JError",
    "Py4JJavaError",
    "PySparkException",
    "PythonEvalType",
    "SparkSession",
    "StorageLevel",
    "TaskContext",
    "UserDefinedFunction",
    "context_module",
    "functions",
    "java_gateway",
    "types",
]
