"""A storage task over landed batches of a stream, by the commands that a user types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polynya.formats.landed import batch_name
from tests.formats.stream.streams import landed
from tests.oracle.packs.driver import CommandDriver
from tests.projects import write_project

pytestmark = pytest.mark.spark

TASK = """\
apiVersion: polynya/v1
kind: storage
name: facts
schema: web
landing: {path: clicks, format: stream}
datasets:
  - name: users
    keys: [id]
    history: true
    apply_as_deletes: "gone"
    timestamp: TIME
"""
CURRENT = "SELECT id, name FROM web.users ORDER BY id"
HISTORY = (
    "SELECT name, hdr__operation AS op, hdr__from_timestamp AS since "
    "FROM web.users__history ORDER BY id, since, name, op"
)
KEPT = (
    "SELECT hdr__quarantine.rule AS rule, hdr__quarantine.offset AS at "
    "FROM web_internal.users_internal WHERE hdr__partition = 'quarantine' ORDER BY rule"
)


def land(project: Path, number: int, first: int, *messages: bytes | None) -> None:
    folder = project / "landing" / "clicks" / "users"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / batch_name(number)).write_bytes(landed(messages, number, first))


def copied(events: tuple[dict[str, Any], ...]) -> list[tuple[int, int, int]]:
    found = [one for one in events if one["type"] == "batch.copied"]
    return [(one["rows_in"], one["rows_out"], one["rows_quarantined"]) for one in found]


def configured(project: Path, time: str) -> Path:
    return write_project(project, facts=TASK.replace("TIME", time))


def test_messages_become_a_table_with_history(driver: CommandDriver, tmp_path: Path) -> None:
    project = configured(tmp_path, "seen")
    array = b'[{"id":2,"name":"Ben"},{"id":3,"name":"Cid","tags":["a"]}]'
    land(project, 1, 0, b'{"id":1,"name":"Ann"}', b"oops", None, array)
    land(project, 2, 4, b'{"id":1,"name":"Anna"}', b'{"id":3,"gone":true}')
    land(project, 3, 6, b'{"id":2,"name":"Benny","seen":"tomorrow"}')

    first = driver.run_project(project, "always")
    again = driver.run_project(project, "always")
    kept, current = driver.query(project, [KEPT, CURRENT])
    status = driver.call("status", "users", "--json", "--project", str(project)).output
    shown = json.loads(status.splitlines()[-1])

    assert copied(first.events) == [(8, 5, 3)]
    # Three are in quarantine, and of these one could not be parsed.
    assert (shown["rows_quarantined"], shown["rows_unparsed"]) == (3, 1)
    assert copied(again.events) == []
    assert [(one["rule"], one["at"]) for one in kept] == [
        ("bad_json", 1), ("bad_timestamp", 0), ("null_key", 2),
    ]  # fmt: skip
    assert current == [{"id": 1, "name": "Anna"}, {"id": 2, "name": "Ben"}]


@pytest.mark.slow
def test_what_was_refused_is_replayed_and_a_reload_finds_no_difference(
    driver: CommandDriver, tmp_path: Path
) -> None:
    project = configured(tmp_path, "seen")
    land(project, 1, 0, b'{"id":1,"name":"Ann"}', b"oops", None)
    land(project, 2, 4, b'{"id":1,"name":"Anna"}', b'{"id":2,"name":"Ben"}')
    land(project, 3, 6, b'{"id":2,"name":"Benny","seen":"tomorrow"}', b'{"id":1,"tags":["a"]}')
    land(project, 4, 8, b'{"id":3,"name":"Cid"}', b'{"id":3,"gone":true}')
    driver.run_project(project, "always")

    # With the time of the message one of them is right, and gets the place that it had.
    configured(project, "hdr__kafka_timestamp")
    printed = driver.call("quarantine", "replay", "--all", "--project", str(project))
    land(project, 5, 10, b'{"id":4,"name":"Dot"}')
    driver.run_project(project, "always")
    kept, current, history = driver.query(project, [KEPT, CURRENT, HISTORY])

    assert printed.code == 0, printed.errors
    assert [one["rule"] for one in kept] == ["bad_json", "null_key"]
    status = driver.call("status", "users", "--json", "--project", str(project)).output
    shown = json.loads(status.splitlines()[-1])
    # What was replayed and refused again counts once.
    assert (shown["rows_quarantined"], shown["rows_unparsed"]) == (2, 1)
    assert shown["rows_per_second"] > 0
    assert [one["name"] for one in current] == [None, "Benny", "Dot"]
    assert [one["since"][:19] for one in history if one["name"] == "Dot"] == ["2026-11-23T12:00:10"]

    # What landed says all that there is in the table: a reload finds no difference. Messages that
    # cannot be read do not refuse it: they never had a record.
    printed = driver.call("reload", "facts", "--project", str(project))
    after = driver.query(project, [CURRENT, HISTORY])

    assert printed.code == 0, printed.errors
    assert after == [current, history]
    assert copied(driver.run_project(project, "always").events) == []


def test_a_table_remembers_the_newest_landed_batch_only(
    driver: CommandDriver, tmp_path: Path
) -> None:
    project = configured(tmp_path, "hdr__kafka_timestamp")
    for number in range(1, 5):
        land(project, number, number, b'{"id":%d,"gone":false}' % number)
        if number % 2 == 0:
            driver.run_project(project, "never")

    state = "SELECT hdr__state AS s FROM web_internal.users_internal WHERE hdr__state IS NOT NULL"
    states, counted = driver.query(project, [state, "SELECT count(*) AS n FROM web.users"])

    files = [json.loads(one["s"])["files"] for one in states if '"files"' in one["s"]]
    assert [list(one) for one in files] == [[f"clicks/users/{batch_name(4)}"]]
    assert counted == [{"n": 4}]


def test_a_first_batch_without_messages_makes_no_view_and_the_next_one_does(
    driver: CommandDriver, tmp_path: Path
) -> None:
    task = TASK.replace("keys: [id]", "mode: append_only").replace("    history: true\n", "")
    task = task.replace('    apply_as_deletes: "gone"\n', "").replace("timestamp: TIME", "")
    project = write_project(tmp_path, facts=task.replace("schema: web", "schema: late"))
    land(project, 1, 0)
    assert copied(driver.run_project(project).events) == [(0, 0, 0)]
    land(project, 2, 0, b'{"id":1,"name":"Ann"}')
    driver.run_project(project)

    [rows] = driver.query(project, ["SELECT id, name FROM late.users"])
    assert rows == [{"id": 1, "name": "Ann"}]
