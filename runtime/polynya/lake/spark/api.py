"""The one door to PySpark and py4j: every name of theirs that Polynya uses.

A module that needs another name of theirs adds it here, so that one file shows what a change of
Spark can break.
"""

from __future__ import annotations

from py4j.clientserver import JavaClient
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import DataFrame, Observation, SparkSession, functions, types

__all__ = [
    "CapturedException",
    "DataFrame",
    "JavaClient",
    "Observation",
    "Py4JError",
    "Py4JJavaError",
    "PySparkException",
    "SparkSession",
    "functions",
    "types",
]
