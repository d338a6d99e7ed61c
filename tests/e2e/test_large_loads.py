"""A large first full load, killed on the way or read by a cluster: every row is there once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.glue import GlueCatalog

from tests.aws import REGION, aws_server
from tests.e2e.killing import KILLED, run_to_end, running
from tests.oracle.packs.driver import ROOT, environment
from tests.oracle.packs.read_back import READERS, internal_table
from tests.projects import PROJECT, aws_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROWS, FILES = 300_000, 3
TASK = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: orders, format: parquet}
datasets:
  - {name: orders, keys: [id], sequence_by: [id], initial_load: "*.parquet", path: "none/*"}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with a load that is large enough for tasks."""
    (tmp_path / "polynya.yml").write_text(PROJECT)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "shop.yml").write_text(TASK)
    landed = tmp_path / "landing" / "orders"
    landed.mkdir(parents=True)
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        orders = pa.table({"id": ids, "amount": pc.random(ROWS, initializer=number)})
        pq.write_table(orders, landed / f"{number}.parquet", row_group_size=50_000)
    return tmp_path


def current(directory: Path) -> list[int]:
    """The keys of Current."""
    columns = ["hdr__partition", "id"]
    rows = READERS["pyiceberg"](directory, *internal_table("shop", "orders"), columns)
    return sorted(row["id"] for row in rows if row["hdr__partition"] == "current")


@pytest.mark.parametrize("mode", ["before", "after"])
def test_killed_at_the_commit_of_a_load(shop: Path, mode: str) -> None:
    """The first commit takes the table over, the second has its columns, the third the rows."""
    with running(shop, mode=mode, number=3) as run:
        assert run.wait() == KILLED, run.text()

    run_to_end(shop)

    assert current(shop) == list(range(ROWS * FILES))


def test_killed_while_tasks_write(shop: Path) -> None:
    with running(shop) as run:
        deadline = time.monotonic() + 120
        while not _staged(shop) and time.monotonic() < deadline:
            time.sleep(0.05)
        run.kill()

    run_to_end(shop)

    assert current(shop) == list(range(ROWS * FILES))


def test_executors_of_a_cluster_read_and_write_a_load(shop: Path) -> None:
    line = [sys.executable, "-m", "tests.e2e.cluster_load", str(shop)]

    done = subprocess.run(line, cwd=ROOT, env=environment(), capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-3000:]
    assert "load.progress" in done.stdout
    assert current(shop) == list(range(ROWS * FILES))


def test_executors_of_a_cluster_write_a_load_to_s3(shop: Path) -> None:
    with aws_server("acme-lake") as endpoint:
        (shop / "polynya.yml").write_text(aws_project(endpoint))
        line = [sys.executable, "-m", "tests.e2e.cluster_load", str(shop)]

        done = subprocess.run(line, cwd=ROOT, env=environment(), capture_output=True, text=True)

        assert done.returncode == 0, done.stderr[-3000:]
        assert "load.progress" in done.stdout
        options = {"glue.endpoint": endpoint, "s3.endpoint": endpoint, "client.region": REGION}
        table = GlueCatalog("any", **options).load_table(internal_table("shop", "orders"))
        scan = table.scan("hdr__partition = 'current'", ("id",))
        assert sorted(scan.to_arrow().column("id").to_pylist()) == list(range(ROWS * FILES))
        # Spark would have named its files after its tasks.
        assert not [one for one in scan.plan_files() if "00001.parquet" in one.file.file_path]


def _staged(directory: Path) -> bool:
    """Whether a large data file is being written."""
    files = (directory / "warehouse").rglob("*.parquet")
    return any(file.stat().st_size > 100_000 for file in files)
