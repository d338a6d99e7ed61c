"""A Spark cluster: reached within seconds or refused with a code, and sent the package."""

from __future__ import annotations

import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import polynya
from polynya.engine.session import start_spark
from polynya.lake.spark.session import SessionSettings, spark_conf
from polynya.lake.spark.standalone import find_master, join, packed
from polynya.model.config.engines import SparkCluster
from polynya.model.errors import DependencyError
from polynya.model.loader import load_project
from polynya.testing.fakes import FakeClock
from tests.projects import PROJECT, write_project


@pytest.fixture
def closed() -> Iterator[int]:
    """A port of this machine at which nothing answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def cluster(*ports: int) -> SparkCluster:
    masters = ",".join(f"127.0.0.1:{port}" for port in ports)
    return SparkCluster(f"spark://{masters}", "127.0.0.1")


def test_a_master_that_does_not_answer_is_an_error_before_a_jvm_starts(
    tmp_path: Path, closed: int
) -> None:
    engine = f"warehouse: ./warehouse, engine: 'spark://127.0.0.1:{closed}'"
    text = PROJECT.replace("warehouse: ./warehouse", engine)

    with pytest.raises(DependencyError) as caught:
        start_spark(load_project(write_project(tmp_path, project=text)))

    assert caught.value.code == "POLYNYA-DEP-008"
    assert "Connection refused" in str(caught.value)
    assert not (tmp_path / "warehouse").exists()


def test_one_master_that_answers_is_enough(closed: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        find_master(cluster(closed, server.getsockname()[1]))


def test_a_cluster_without_executors_is_given_up() -> None:
    stopped = []
    tracker = SimpleNamespace(getExecutorInfos=lambda: ["the driver"])
    java = SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: tracker))
    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(_jsc=java), stop=lambda: stopped.append(True)
    )
    clock = FakeClock()
    began = clock.monotonic()

    with pytest.raises(DependencyError, match="no executor of the Spark cluster") as caught:
        join(spark, cluster(7077), clock=clock)

    assert caught.value.code == "POLYNYA-DEP-014"
    assert 60 <= clock.monotonic() - began < 61
    assert stopped == [True]


def test_the_archive_is_this_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    archive = packed()

    assert packed() == archive
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]
    with zipfile.ZipFile(archive) as opened:
        files = {name for name in opened.namelist() if name.endswith(".py")}
    root = Path(polynya.__file__).parent
    assert files == {str(path.relative_to(root.parent)) for path in root.rglob("*.py")}
    code = "import sys; sys.path.insert(0, sys.argv[1]); import polynya; print(polynya.__file__)"
    line = [sys.executable, "-c", code, str(archive)]
    printed = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert printed.startswith(str(archive))


def test_executors_fetch_the_jars_from_the_address_of_the_driver() -> None:
    far = SparkCluster("spark://ten:7077", "10.0.0.4", memory="2g")

    conf = spark_conf(SessionSettings(jars=["/a.jar", "/b.jar"], catalog={}, cluster=far))

    assert conf["spark.jars"] == "/a.jar,/b.jar"
    assert (conf["spark.driver.host"], conf["spark.executor.memory"]) == ("10.0.0.4", "2g")
    assert "spark.default.parallelism" not in conf


@pytest.mark.parametrize(
    ("driver", "executor", "limit"),
    [("8g", "2g", "128m"), ("8g", "800m", "50m"), ("512m", "2g", "32m"), ("9g", None, "64m")],
)
def test_what_is_sent_to_all_executors_fits_into_the_smallest_heap(
    driver: str, executor: str | None, limit: str
) -> None:
    far = SparkCluster("spark://ten:7077", "10.0.0.4", memory=executor)

    conf = spark_conf(SessionSettings(jars=[], catalog={}, memory=driver, cluster=far))

    assert conf["spark.sql.autoBroadcastJoinThreshold"] == limit
