"""The only import of PySpark and py4j: every name of theirs that Polynya uses.

A module that needs another name adds it here, so that one file shows what a change of Spark can
break. PySpark takes a tenth of a second to load, so the first name that is used loads it: a module
that commands without a JVM import, too, uses `api.NAME`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER, JavaClient
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
    "SHUTDOWN_FINALIZER_WORKER",
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

#: Where each name is.
_MODULES: Final = {
    "AccumulatorParam": "pyspark.accumulators",
    "CapturedException": "pyspark.errors.exceptions.captured",
    "JavaClient": "py4j.clientserver",
    "JavaObject": "py4j.java_gateway",
    "Py4JError": "py4j.protocol",
    "Py4JJavaError": "py4j.protocol",
    "PySparkException": "pyspark.errors",
    "PythonEvalType": "pyspark.util",
    "SHUTDOWN_FINALIZER_WORKER": "py4j.clientserver",
    "StorageLevel": "pyspark",
    "TaskContext": "pyspark",
    "UserDefinedFunction": "pyspark.sql.udf",
}
#: Modules that are used by these names.
_AS_WHOLE: Final = {
    "context_module": "pyspark.core.context",
    "functions": "pyspark.sql.functions",
    "java_gateway": "pyspark.java_gateway",
    "types": "pyspark.sql.types",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    if name in _AS_WHOLE:
        found: Any = import_module(_AS_WHOLE[name])
    else:
        found = getattr(import_module(_MODULES.get(name, "pyspark.sql")), name)
    globals()[name] = found
    return found
