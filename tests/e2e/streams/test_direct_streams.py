"""A stream that never lands becomes a table, by the commands that a user types."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.killing import KILLED, run_to_end, running
from tests.oracle.packs.driver import CliDriver, CommandDriver
from tests.projects import write_project

pytestmark = pytest.mark.spark

EXPORTS = """\
apiVersion: polynya/v1
kind: streaming_landing
name: exports
source:
  files: {url: in, pattern: "<yyyy>/<MM>/<dd>/part-*.json"}
batch: {max_records: 3}
direct: true
"""
FACTS = """\
apiVersion: polynya/v1
kind: streaming_transform
name: facts
from: exports
schema: web
mode: merge
columns: [{name: id, expression: id, type: bigint, key: 1}]
history: true
"""
CURRENT = "SELECT id, name FROM web.facts ORDER BY id"
VERSIONS = "SELECT id, name FROM web.facts__history ORDER BY id, name"
BAD = (
    "SELECT hdr__quarantine.file AS file, hdr__quarantine.offset AS at "
    "FROM web_internal.facts_internal WHERE hdr__partition = 'quarantine' ORDER BY file"
)


def put(project: Path, name: str, *lines: str) -> str:
    place = f"{datetime.now(UTC):%Y/%m/%d}/{name}"
    file = project / "in" / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return place


def event(key: int, name: str) -> str:
    return json.dumps({"id": key, "name": name})


def printed(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line]


@pytest.mark.slow
def test_files_are_read_into_a_table_and_nothing_lands(
    driver: CommandDriver, tmp_path: Path
) -> None:
    project = write_project(tmp_path, exports=EXPORTS, facts=FACTS)
    place = put(project, "part-1.json", event(1, "a"), "no json", event(2, "b"), event(1, "c"))
    driver.run_project(project, "always")

    rows, versions, bad = driver.query(project, [CURRENT, VERSIONS, BAD])
    status = printed(driver.call("status", "--json", "--project", str(project)).output)

    assert rows == [{"id": 1, "name": "c"}, {"id": 2, "name": "b"}]
    assert [row["name"] for row in versions] == ["a", "c", "b"]
    assert bad == [{"file": f"files:{place}/1", "at": 0}]
    assert not (project / "landing").exists() or not list((project / "landing").rglob("*"))
    [stream] = [one for one in status if one["type"] == "stream.status"]
    assert (stream["direct"], stream["records"], stream["batches"]) == (True, 4, 2)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["before", "after"])
def test_a_process_killed_at_each_commit_loses_and_doubles_nothing(
    tmp_path: Path, mode: str
) -> None:
    project = write_project(tmp_path, exports=EXPORTS, facts=FACTS)
    place = put(project, "part-1.json", *(event(n % 5, f"{n:02d}") for n in range(10)), "no json")
    for number in range(1, 5):
        with running(project, apply="never", mode=mode, number=number) as run:
            assert run.wait() in {KILLED, 0}, run.text()
    run_to_end(project, apply="always")

    rows, versions, bad = CliDriver().query(project, [CURRENT, VERSIONS, BAD])

    assert [row["name"] for row in rows] == ["05", "06", "07", "08", "09"]
    assert sorted(row["name"] for row in versions) == [f"{n:02d}" for n in range(10)]
    assert bad == [{"file": f"files:{place}/10", "at": 0}]
