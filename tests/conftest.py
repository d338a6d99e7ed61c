"""One Spark session for all tests of a pytest process, started the way `polynya run` starts it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from polynya.lake.spark.session import SparkSession
from tests.projects import write_project

if TYPE_CHECKING:
    from tests.lab.lab import Lab

# `--hypothesis-profile nightly` looks longer than a push can wait.
settings.register_profile("ci", deadline=None)
settings.register_profile("nightly", deadline=None, max_examples=500)
settings.load_profile("ci")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever asks for the session needs a JVM. Keep the files of this process's share."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    share = os.environ.get("POLYNYA_TEST_SHARE")
    if share is None:
        return
    number, of = map(int, share.split("/"))
    files = sorted({item.path for item in items if "spark" in item.keywords})
    mine = set(files[number - 1 :: of])
    config.hook.pytest_deselected(items=[item for item in items if item.path not in mine])
    items[:] = [item for item in items if item.path in mine]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With `-k` a share may be left without a test, which is no failure."""
    if "POLYNYA_TEST_SHARE" in os.environ and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


@pytest.fixture(scope="session")
def shared_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project folder whose warehouse all Spark tests share."""
    return write_project(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="session")
def spark(shared_project: Path) -> SparkSession:
    """The session; tests keep apart by schemas of their own."""
    # Late: a run without Spark tests need not import PySpark.
    from polynya.engine.start import start_spark
    from polynya.model.reading.loader import load_project

    # A JVM that lives for hours is worth all its compilers.
    long_lived = "POLYNYA_TEST_LONG_LIVED" in os.environ
    return start_spark(load_project(shared_project), long_lived=long_lived)


@pytest.fixture
def lab(spark: SparkSession, shared_project: Path, tmp_path: Path) -> Lab:
    """A schema, a landing folder and a clock of the test's own."""
    from tests.lab.lab import Lab, next_schema

    return Lab(spark, shared_project, tmp_path / "landing", next_schema())
