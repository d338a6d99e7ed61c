"""A large first full load, killed on the way or read by a cluster: every row is there once."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.glue import GlueCatalog

from tests.aws import REGION, aws_server
from tests.e2e.killing import KILLED, run_to_end, running
from tests.e2e.spark_cluster import python_workers, spark_cluster
from tests.oracle.packs.driver import CliDriver
from tests.oracle.packs.read_back import READERS, internal_table
from tests.projects import PROJECT, aws_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROWS, FILES = 300_000, 3
LARGE_BYTES = "polynya.lake.maintenance.rewrite_plan.LARGE_BYTES"
COUNTS = "count(*) AS rows, max(id) AS newest"
TASK = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: orders, format: parquet}
datasets:
  - name: orders
    keys: [id]
    sequence_by: [at]
    initial_load: "*.parquet"
    path: "changes/*"
    apply_as_deletes: "op = 'D'"
    history: true
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
        amounts = pc.random(ROWS, initializer=number)
        orders = pa.table({"id": ids, "amount": amounts, "at": [0] * ROWS, "op": ["I"] * ROWS})
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


def test_a_spark_cluster_gives_what_one_process_gives(shop: Path, tmp_path: Path) -> None:
    alone = tmp_path.with_name(f"{tmp_path.name}-alone")
    shutil.copytree(shop, alone)
    workers = tmp_path.with_name(f"{tmp_path.name}-workers")
    with spark_cluster(workers) as master:
        (shop / "polynya.yml").write_text(_on_cluster(PROJECT, master))
        loaded = CliDriver().run_project(shop)
        _land_changes(shop)
        CliDriver().run_project(shop, apply="always")
        rewritten = _rewritten(shop)
        ((counted,),) = CliDriver().query(shop, [f"SELECT {COUNTS} FROM shop.orders"])
    run_to_end(alone)
    _land_changes(alone)
    run_to_end(alone, apply="always")

    assert "load.progress" in {event["type"] for event in loaded.events}
    assert python_workers(workers) == ["one", "two"]
    assert "bytes are written by 2 tasks of the cluster" in rewritten
    assert "files became" in rewritten
    assert _sorted_rows(shop) == _sorted_rows(alone)
    assert current(shop) == sorted({*range(ROWS * FILES + 2)} - {7})
    assert counted == {"rows": ROWS * FILES + 1, "newest": ROWS * FILES + 1}


def test_executors_of_a_cluster_write_a_load_to_s3(shop: Path, tmp_path: Path) -> None:
    workers = tmp_path.with_name(f"{tmp_path.name}-workers")
    with aws_server("acme-lake") as endpoint, spark_cluster(workers) as master:
        target = aws_project(endpoint).replace("s3://acme-landing/in", "./landing")
        (shop / "polynya.yml").write_text(
            f"{target}    engine: {{master: '{master}', memory: 600m}}\n"
        )

        loaded = CliDriver().run_project(shop)

        assert "load.progress" in {event["type"] for event in loaded.events}
        assert python_workers(workers) == ["one", "two"]
        options = {"glue.endpoint": endpoint, "s3.endpoint": endpoint, "client.region": REGION}
        table = GlueCatalog("any", **options).load_table(internal_table("shop", "orders"))
        scan = table.scan("hdr__partition = 'current'", ("id",))
        assert sorted(scan.to_arrow().column("id").to_pylist()) == list(range(ROWS * FILES))
        # Spark would have named its files after its tasks.
        assert not [one for one in scan.plan_files() if "00001.parquet" in one.file.file_path]


def _rewritten(directory: Path) -> str:
    """Give the table another layout, and let maintenance write its files again; what that said."""
    task = directory / "tasks" / "shop.yml"
    task.write_text(task.read_text() + '    partition_by: ["bucket(2, id)"]\n')
    action = ("maintain", "orders", "--action", "rewrite_layout", "--debug")
    with running(directory, *action, mode="as it is", constants={LARGE_BYTES: 0}) as run:
        assert run.wait() == 0, run.text()
        return run.output.read_text()


def _on_cluster(project: str, master: str) -> str:
    return project.replace("warehouse: ./warehouse", f"warehouse: ./warehouse, {_engine(master)}")


def _engine(master: str) -> str:
    return f"engine: {{master: '{master}', memory: 600m}}"


def _land_changes(directory: Path) -> None:
    """An update, a new row, a delete, and a key that is there twice."""
    changes = pa.table(
        {
            "id": [5, ROWS * FILES, 7, ROWS * FILES + 1, ROWS * FILES + 1],
            "amount": [0.5, 0.25, -1.0, 0.0, 1.0],
            "at": [1, 1, 1, 1, 2],
            "op": ["U", "I", "D", "I", "U"],
        }
    )
    landed = directory / "landing" / "orders" / "changes"
    landed.mkdir()
    pq.write_table(changes, landed / "0.parquet")


def _sorted_rows(directory: Path) -> list[tuple[object, ...]]:
    """A part of the rows, those that changed among them."""
    columns = ("hdr__partition", "hdr__operation", "id", "amount", "at")
    some = f"id < 20000 OR id >= {ROWS * FILES}"
    rows = READERS["duckdb"](directory, *internal_table("shop", "orders"), columns, some)
    return sorted(tuple(map(repr, row.values())) for row in rows)


def _staged(directory: Path) -> bool:
    """Whether a large data file is being written."""
    files = (directory / "warehouse").rglob("*.parquet")
    return any(file.stat().st_size > 100_000 for file in files)
