"""A corner of the shared warehouse for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.lake.session import SparkSession
from tests.lake.lab import Lab, next_schema


@pytest.fixture
def lab(spark: SparkSession, shared_project: Path, tmp_path: Path) -> Lab:
    """A schema, a landing folder and a clock of the test's own."""
    return Lab(spark, shared_project, tmp_path / "landing", next_schema())
