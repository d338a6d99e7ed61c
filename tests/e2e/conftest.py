"""The engine as tests of whole projects reach it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# Makes `tests.oracle` importable whatever pytest's import mode is.
ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from polynya.lake.spark.api import SparkSession  # noqa: E402 - needs the path
from tests.lab.commands import InProcessDriver  # noqa: E402
from tests.oracle.packs.driver import CliDriver, Driver  # noqa: E402


@pytest.fixture(scope="session")
def driver(spark: SparkSession) -> Driver:
    """Commands in the JVM of the tests; with POLYNYA_TEST_CLI a process for each, some times as
    long."""
    return CliDriver() if "POLYNYA_TEST_CLI" in os.environ else InProcessDriver(spark)
