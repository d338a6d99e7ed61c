"""The lake with its catalog in PostgreSQL and its warehouse in an S3-compatible store.

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
    "tests/lake/apply/test_local_apply.py",
    "tests/engine/test_fenced_steps.py",
    "tests/e2e/postgresql/on_postgresql.py",
)
#: It looks for files in a folder.
LOCAL = "tests/lake/apply/test_two_owners.py::test_a_refused_commit_leaves_no_files"


def test_the_lake_works_with_a_catalog_on_a_server_as_with_a_file() -> None:
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    line += ["--deselect", LOCAL]

    done = subprocess.run(
        line,
        cwd=ROOT,
        env={**environment(), "POLYNYA_TEST_POSTGRESQL": "1"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout[-6000:]
