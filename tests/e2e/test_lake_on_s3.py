"""Applies without a query, loads by tasks and maintenance, with a warehouse in S3.

A process has one Spark session, so that another pytest runs these tests on a session of its own.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.oracle.packs.driver import ROOT, environment

pytestmark = [pytest.mark.spark, pytest.mark.slow]
TESTS = (
    "tests/lake/apply/test_local_apply.py",
    "tests/lake/apply/test_applies.py",
    "tests/engine/test_large_loads.py",
    "tests/engine/test_fenced_steps.py",
    "tests/engine/test_reader.py",
    "tests/e2e/on_s3.py",
    "tests/lake/maintenance/in_s3.py",
)


def test_the_lake_works_in_s3_as_in_a_folder() -> None:
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]

    done = subprocess.run(
        line,
        cwd=ROOT,
        env={**environment(), "POLYNYA_TEST_S3": "1"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout[-6000:]
