"""A source whose keys or log positions change: the dataset waits, and there is a way on."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.lake.table.suspension import resume
from polynya.model.errors import SuspendedError
from tests.formats.debezium.builders import an_event, with_schema
from tests.lab.events import land, upsert
from tests.lab.lab import Capture, Lab
from tests.oracle.emit import debezium_lines

HOUR = 3600


def later(capture: Capture, at: int, seconds: int, key: int, name: str) -> dict[str, Any]:
    """An event at a position of the log and another time than goes with it."""
    event = upsert(key, at, name=name)
    line: dict[str, Any] = debezium_lines([event], capture.lab.schema, "users", ["id"])[0]
    millis = line["value"]["source"]["ts_ms"] + (seconds - at) * 1000
    line["value"]["source"] |= {"ts_ms": millis, "ts_us": millis * 1000, "ts_ns": millis * 10**6}
    line["value"]["ts_ms"] = millis + 5
    return line


def test_a_log_that_began_again_waits_and_then_comes_after_what_was_before(lab: Lab) -> None:
    capture = lab.capture(history=True)
    users = capture["users"]
    land(capture, upsert(1, 1000, name="before"), upsert(2, 1010, name="kept"))
    capture.run("always")
    capture.land(later(capture, 5, 1010 + HOUR, 1, "after"))
    with pytest.raises(SuspendedError, match="log of the source began again"):
        capture.run("always")
    assert users.current("id", "name") == [(1, "before"), (2, "kept")]

    resume(users.table("somebody"), {"restart_log": "apply"})
    capture.run("always")
    # What is late or delivered again of the old log is as old as it was.
    land(capture, upsert(2, 1005, name="late"), upsert(1, 1000, name="before"))
    capture.land(later(capture, 6, 1020 + HOUR, 3, "new"))
    capture.run("never")

    assert users.current("id", "name") == [(1, "after"), (2, "kept"), (3, "new")]
    assert sorted(row[1] for row in users.history("id", "name")) == [
        "after", "before", "kept", "late", "new",
    ]  # fmt: skip


def test_a_key_that_gains_a_column_waits_and_may_be_ignored(lab: Lab) -> None:
    capture = lab.capture()
    users = capture["users"]
    land(capture, upsert(1, 10, name="Ann"))
    capture.run("always")
    line = later(capture, 20, 20, 2, "Ben")
    line["key"] = {"id": 2, "name": "Ben"}
    capture.land(line)
    with pytest.raises(SuspendedError, match=r"named \(id\) and now name \(id, name\)"):
        capture.run("always")

    resume(users.table("somebody"), {"change_key": "ignore"})
    capture.run("always")
    capture.land({**line, "value": later(capture, 30, 30, 2, "Ben")["value"]})
    capture.run("always")

    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben")]
    assert users.table().state.copy.columns.key_names == [["id"], ["id", "name"]]


def test_a_column_of_the_key_that_is_renamed_is_no_other_key(lab: Lab) -> None:
    capture = lab.capture()
    users = capture["users"]

    def event(op: str, at: int, key: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
        fields = dict.fromkeys(row, "string") | dict.fromkeys(key, "int32")
        place = {"schema": lab.schema, "table": "users", "lsn": at, "sequence": f'["{at}","{at}"]'}
        made = an_event(op, None if op == "d" else row, key=key, before=key, **place)
        return with_schema(made, fields)

    capture.land(event("c", 10, {"id": 1}, {"id": 1, "name": "Ann"}))
    capture.land(event("c", 11, {"id": 2}, {"id": 2, "name": "Ben"}))
    capture.run("always")
    capture.land(event("u", 20, {"number": 1}, {"number": 1, "name": "Anna"}))
    capture.land(event("d", 21, {"number": 2}, {"number": 2, "name": ""}))
    with pytest.raises(SuspendedError, match="column id seems to be called number now"):
        capture.run("always")

    resume(users.table("somebody"), {"rename_column": "apply"})
    capture.run("always")
    capture.land(event("u", 30, {"number": 1}, {"number": 1, "name": "Annie"}))
    capture.run("always")

    assert users.current("number", "name") == [(1, "Annie")]


def test_a_dataset_with_a_new_name_reads_what_has_landed(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, upsert(1, 10, name="Ann"))
    land(capture, upsert(1, 11, name="Rome"), table="towns")
    capture.run("always")
    land(capture, upsert(2, 20, name="Ben"))
    source = f"{lab.schema}.users"
    named = {"name": "people", "source": source, "keys": ["id", "name"]}
    capture.more = {"datasets": [named]}
    capture.run("always")
    land(capture, upsert(3, 30, name="Cid"))
    capture.run("always")

    people = capture["users"]
    assert people.dataset.name == "people"
    assert people.current("id", "name") == [(1, "Ann"), (2, "Ben"), (3, "Cid")]
    assert people.totals()["in"] == 3
    snapshot = people.table().state.snapshot
    capture.run("always")
    assert people.table().state.snapshot == snapshot
