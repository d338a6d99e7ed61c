"""How much a command costs in a new process: processor seconds, in turns with what it cannot save.

`python -m bench start` runs each command on the lake of the demo (`make demo`) in turns with
`python -c pass` and with the libraries that reading a table needs. Processor seconds of the child,
user and system, bear other work on the machine better than the clock. `status` is also asked of 500
datasets, which are entries of the catalog for the table of one, so that nothing has to run.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, NamedTuple

from bench.floors.floor import Measured

ROUNDS: Final = 5
DATASETS: Final = 500
LAKE: Final = Path(__file__).resolve().parents[1] / "build" / "demo"
#: What a process cannot save: Python, and with it the libraries that read a table.
NOTHING: Final = ("-c", "pass")
READERS: Final = ("-c", "import pyiceberg.catalog, duckdb")
#: Seconds of the readers for one of ours, at least.
FLOORS: Final = {
    "--help": 0.6,
    # 0.8 s, where the readers take 0.43 s.
    "query of a small table": 0.54,
    # 3 s.
    "run --once with nothing to do": 0.14,
    f"status of {DATASETS} datasets": 0.14,
    "serve until /health": 0.5,
}
_QUERY: Final = ("query", "SELECT count(*) FROM shop.users")


class Cost(NamedTuple):
    """Processor seconds of a process, and those of the clock."""

    processor: float
    clock: float


def commands(lake: Path, many: Path, quiet: Path) -> dict[str, tuple[str, ...]]:
    """Each command line, as the arguments of Python."""

    def of(*arguments: str, project: Path = lake) -> tuple[str, ...]:
        return ("-m", "polynya", *arguments, "-p", str(project))

    return {
        "--help": ("-m", "polynya", "--help"),
        "validate": of("validate"),
        "plan": of("plan"),
        "query of a small table": of(*_QUERY),
        "status": of("status"),
        "run --once with nothing to do": of("run", "--once", project=quiet),
        f"status of {DATASETS} datasets": of("status", project=many),
    }


def cost(arguments: Sequence[str]) -> Cost:
    """Run Python with arguments in a new process. Ends the benchmark where that fails."""
    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"exit code {child.returncode}: python {' '.join(arguments)}")
    return Cost(used.ru_utime + used.ru_stime, time.perf_counter() - began)


def serving(lake: Path) -> dict[str, Cost]:
    """What `polynya serve` has used when a probe, and when a page is answered."""
    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "polynya", "-p", str(lake), "--json", "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    costs = {}
    try:
        assert child.stdout is not None, "it is a pipe"
        served = next(one for one in map(json.loads, child.stdout) if one["type"] == "api.served")
        connection = HTTPConnection(served["url"].removeprefix("http://"))
        for path in ("/health", "/console"):
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                sys.exit(f"{path}: status {answer.status}")
            seconds = time.perf_counter() - began
            costs[f"serve until {path}"] = Cost(_used_so_far(child.pid), seconds)
    finally:
        child.terminate()
        child.wait()
    return costs


def _used_so_far(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def with_many(lake: Path, folder: Path) -> Path:
    """A project of so many datasets whose tables are that of `shop.users` of the demo."""
    project = folder / "many"
    shutil.copytree(lake, project)
    task = (project / "tasks" / "users.yml").read_text()
    for other in (project / "tasks").iterdir():
        other.unlink()
    head, _, dataset = task.partition("  - name: users\n")
    names = [f"users{number}" for number in range(DATASETS)]
    entries = "".join(f"  - name: {name}\n{dataset}" for name in names)
    (project / "tasks" / "users.yml").write_text(head + entries)
    subprocess.run(
        [sys.executable, "-m", "polynya", "adopt", "-p", str(project)],
        check=True,
        capture_output=True,
    )
    with closing(sqlite3.connect(project / "warehouse" / "catalog.db")) as catalog, catalog:
        catalog.executemany(
            "INSERT INTO iceberg_tables SELECT catalog_name, table_namespace, ?, "
            "metadata_location, previous_metadata_location, iceberg_type FROM iceberg_tables "
            "WHERE table_namespace = 'shop_internal' AND table_name = 'users_internal'",
            [(f"{name}_internal",) for name in names],
        )
    return project


def with_nothing_to_do(lake: Path, folder: Path) -> Path:
    """A copy of a lake in which everything was copied, derived and maintained."""
    project = folder / "quiet"
    shutil.copytree(lake, project)
    for arguments in (("adopt",), ("run", "--once", "--apply", "always"), ("run", "--once")):
        line = [sys.executable, "-m", "polynya", *arguments, "-p", str(project)]
        subprocess.run(line, check=True, capture_output=True)
    return project


def measure(lake: Path, rounds: int = ROUNDS) -> Iterator[Measured]:
    """A line for each command, beside what its process cannot save."""
    with tempfile.TemporaryDirectory() as folder:
        many, quiet = with_many(lake, Path(folder)), with_nothing_to_do(lake, Path(folder))
        lines = commands(lake, many, quiet)
        costs: dict[str, list[Cost]] = {name: [] for name in ("nothing", "readers", *lines)}
        for _ in range(rounds):
            costs["nothing"].append(cost(NOTHING))
            costs["readers"].append(cost(READERS))
            for name, arguments in lines.items():
                costs[name].append(cost(arguments))
            for name, one in serving(lake).items():
                costs.setdefault(name, []).append(one)
    readers = [one.processor for one in costs["readers"]]
    for name, found in costs.items():
        clock = statistics.median(one.clock for one in found)
        yield Measured(
            f"cold: {name}",
            [one.processor for one in found],
            readers,
            "import of PyIceberg and DuckDB",
            FLOORS.get(name),
            f"processor seconds of a new process; {clock:.2f} s by the clock",
        )


def lake_of_demo() -> Path:
    """The lake of the demo, made by it where it is missing."""
    if not (LAKE / "polynya.yml").is_file():
        subprocess.run([sys.executable, "-m", "examples.demo"], check=True, capture_output=True)
    return LAKE


def main() -> None:
    """Print a line for each command."""
    for line in measure(lake_of_demo()):
        print(line.row(), line.settings, flush=True)
