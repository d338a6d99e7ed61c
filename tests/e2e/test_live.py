"""Results are the same before, during and after apply; a run with nothing new changes nothing."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.killing import running
from tests.oracle.histories import Shape, captured_history, native_history, seeded
from tests.oracle.packs.datasets import Dataset, arrivals
from tests.oracle.packs.driver import CliDriver, command, environment
from tests.oracle.packs.pack import Pack
from tests.oracle.packs.read_back import metadata_location, tables

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SHAPE = Shape(columns=("name", "note"), key_count=20, truncates=1, loads=30)
ROUNDS = 12


def test_a_view_is_the_same_while_an_apply_commits(tmp_path: Path) -> None:
    """One process queries in a loop; the apply of the other commits in the middle of it."""
    dataset = Dataset(
        "busy",
        "t",
        SHAPE.keys,
        SHAPE.columns,
        arrivals(captured_history(seeded(21), SHAPE, 150), 2, 1),
        format="debezium",
    )
    pack = Pack(tmp_path, [dataset.landing()])
    pack.run(CliDriver(), lambda step: "never" if step else "always")
    script = tmp_path / "loop.sql"
    script.write_text(";\n".join(dataset.statements() * ROUNDS) + ";\n", encoding="utf-8")
    line = command("query", "--file", str(script), "--json", "--project", str(tmp_path))
    output = tmp_path / "loop.json"

    with running(tmp_path, apply="always", mode="linger", number=1) as apply:
        _until(lambda: (tmp_path / "at-commit").exists())
        with output.open("wb") as sink:
            query = subprocess.Popen(line, env=environment(), stdout=sink)
            _until(lambda: output.stat().st_size > 0 or query.poll() is not None)
            (tmp_path / "go").touch()
            codes = apply.wait(), query.wait(300)

    results = [json.loads(text)["rows"] for text in output.read_text("utf-8").splitlines()]
    assert codes == (0, 0), apply.text()
    assert len(results) == 2 * ROUNDS
    found = [text for n in range(ROUNDS) for text in dataset.mismatches(results[2 * n : 2 * n + 2])]
    assert not found, "\n".join(found)[:6000]


def test_a_run_with_nothing_new_changes_nothing(tmp_path: Path) -> None:
    shape = Shape(columns=("name",), truncates=2)
    dataset = Dataset(
        "calm", "t", ("id",), ("name",), arrivals(native_history(seeded(22), shape, 40), 2, 1)
    )
    Pack(tmp_path, [dataset.landing()]).run(CliDriver(), lambda _: "always")
    before = [metadata_location(tmp_path, *table) for table in tables(tmp_path)]

    for apply in ("always", "policy", "never"):
        CliDriver().run_project(tmp_path, apply)

    assert [metadata_location(tmp_path, *table) for table in tables(tmp_path)] == before


def _until(ready: object, seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready() and time.monotonic() < deadline:
        time.sleep(0.05)
