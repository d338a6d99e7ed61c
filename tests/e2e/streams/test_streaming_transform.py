"""Files of others land and become a table with history, by the commands that a user types."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.oracle.packs.driver import CommandDriver
from tests.projects import write_project

pytestmark = pytest.mark.spark

EXPORTS = """\
apiVersion: polynya/v1
kind: streaming_landing
name: exports
source:
  files: {url: in, pattern: "<yyyy>/<MM>/<dd>/part-*.json", delete_after_load: true}
batch: {max_records: 3}
"""
FACTS = """\
apiVersion: polynya/v1
kind: streaming_transform
name: facts
from: exports
schema: web
mode: merge
columns:
  - {name: user_id, expression: "user.id", type: bigint, key: 1}
  - {name: city, expression: "upper(user.address.city)"}
  - {name: day, expression: "CAST(substr(hdr__file_name, 1, 10) AS STRING)"}
nested: expand
where: "type <> 'ping'"
soft_delete: "type = 'unsubscribe'"
history: true
partition_by: ["bucket(4, user_id)"]
"""
BAD = (
    "SELECT hdr__quarantine.rule AS rule FROM web_internal.facts_internal "
    "WHERE hdr__partition = 'quarantine'"
)
TODAY = datetime.now(UTC)


def put(project: Path, name: str, age: int, *lines: str) -> Path:
    file = project / "in" / f"{TODAY - timedelta(days=age):%Y/%m/%d}" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def order(user: int, city: str, kind: str = "order") -> str:
    return f'{{"type":"{kind}","user":{{"id":{user},"address":{{"city":"{city}"}}}}}}'


def test_files_land_and_are_merged_with_history(driver: CommandDriver, tmp_path: Path) -> None:
    project = write_project(tmp_path, exports=EXPORTS, facts=FACTS)
    put(project, "part-1.json", 1, order(1, "oslo"), "no json", '{"type":"ping"}', order(2, "rome"))
    file = put(project, "part-1.json", 0, order(1, "bern"), order(2, "", "unsubscribe"))

    driver.run_project(project, "always")
    put(project, "part-2.json", 0, order(3, "graz"))
    driver.run_project(project, "always")

    rows, versions, bad = driver.query(
        project,
        [
            "SELECT user_id, city, day FROM web.facts ORDER BY user_id",
            "SELECT user_id, city FROM web.facts__history ORDER BY user_id, city",
            BAD,
        ],
    )
    today = f"{TODAY:%Y/%m/%d}"
    assert [row for row in rows if row["user_id"] != 2] == [
        {"user_id": 1, "city": "BERN", "day": today},
        {"user_id": 3, "city": "GRAZ", "day": today},
    ]
    assert [row["city"] for row in versions if row["user_id"] == 1] == ["BERN", "OSLO"]
    assert bad == [{"rule": "bad_json"}]
    assert not file.exists(), "it was taken in, and deleted"
