"""The fence, with Iceberg's reference server of its REST protocol as the catalog.

A process has one Spark session, so that another pytest runs these tests on a session of its own.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.oracle.packs.driver import ROOT, environment

pytestmark = [pytest.mark.spark, pytest.mark.slow]
TESTS = (
    "tests/lake/apply/test_two_owners.py",
    "tests/engine/test_fenced_steps.py",
    "tests/engine/test_fenced_metadata.py",
    "tests/e2e/rest/on_rest.py",
)


def test_the_lake_works_with_a_rest_catalog_as_with_a_file() -> None:
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]

    done = subprocess.run(
        line,
        cwd=ROOT,
        env={**environment(), "POLYNYA_TEST_REST": "1"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout[-6000:]
