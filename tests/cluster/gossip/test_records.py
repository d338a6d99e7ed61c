"""Messages as records, and back: what is told is heard, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from polynya.cluster.gossip.messages import Heartbeat, Hint, LandedHint, Sender
from polynya.cluster.gossip.records import (
    MAX_PARTS,
    MAX_REASON,
    MAX_RECORD_BYTES,
    MINOR,
    OtherClusterRecord,
    Skipped,
    heartbeat_records,
    hint_record,
    read_record,
)
from tests.cluster.gossip.given import AT, CLUSTER, heartbeat, names, process, unit


def test_a_heartbeat_is_read_as_it_was_told() -> None:
    told = heartbeat(7, unit("orders"), unit("users", epoch=0, load=0.0))

    (record,) = heartbeat_records(told)

    assert read_record(record, CLUSTER) == told


def test_a_hint_is_read_as_it_was_told() -> None:
    told = Hint("planned", process(), 9, AT + timedelta(milliseconds=5), ("n2.1", "n3.1"))

    assert read_record(hint_record(told), CLUSTER) == told


def landed(**parts: object) -> bytes:
    head = {"v": 1, "type": "landed", "cluster": CLUSTER, "node": "arrivals", "incarnation": "f1"}
    return json.dumps({**head, "seq": 3, "at": AT.isoformat(), "starts": ["a/"], **parts}).encode()


def test_a_hint_of_objects_names_how_their_keys_begin() -> None:
    hint = read_record(landed(starts=["in/orders/", "", "in/new\nline"]), CLUSTER)

    starts = frozenset({"in/orders/", "", "in/new\nline"})
    assert hint == LandedHint(Sender(CLUSTER, "arrivals", "f1"), 3, AT, starts)


@pytest.mark.parametrize("starts", [[], None, "a/", [7], ["a" * 1025], ["a/"] * 65])
def test_a_hint_of_objects_with_anything_else_is_passed_over(starts: object) -> None:
    assert read_record(landed(starts=starts), CLUSTER) is Skipped.FIELD


def test_records_of_the_version_before_are_read_and_written_as_before() -> None:
    """Bytes that an earlier version wrote, before records were pydantic models."""
    head = b'"cluster":"shop","node":"n1","incarnation":"n1.1",'
    at = b'"at":"2026-01-01T00:00:00.000+00:00",'
    old_heartbeat = (
        b'{"v":1,"minor":1,"type":"node",' + head + b'"seq":7,' + at
        + b'"state":"running","cpu":null,"memory":0.123,"part":1,"parts":1,"left_out":0,"units":['
        b'{"task":"sales","name":"shop.orders","epoch":3,"load":0.25,"lag_seconds":1.5,'
        b'"backlog_seconds":2.0,"state":"suspended","reason":"null_key: a key column is NULL"},'
        b'{"task":"sales","name":"shop.\\u00e9","epoch":0,"load":0.0,"lag_seconds":1.5,'
        b'"backlog_seconds":2.0}]}'
    )  # fmt: skip
    old_hint = (
        b'{"v":1,"minor":1,"type":"planned",' + head + b'"seq":9,' + at + b'"to":["n2.1","n3.1"]}'
    )
    ill = unit("orders", state="suspended", reason="null_key: a key column is NULL")
    healthy = unit("é", epoch=0, load=0.0, state="")
    told = heartbeat(7, ill, healthy, cpu=None, memory=0.123)
    hint = Hint("planned", process(), 9, AT, ("n2.1", "n3.1"))

    assert read_record(old_heartbeat, CLUSTER) == told
    assert read_record(old_hint, CLUSTER) == hint
    assert heartbeat_records(replace(told, memory=0.12345)) == [old_heartbeat]
    assert hint_record(hint) == old_hint


def test_a_hint_for_very_many_is_for_all() -> None:
    told = Hint("planned", process(), 9, AT, tuple(f"n{number}.1" for number in range(2000)))

    assert read_record(hint_record(told), CLUSTER) == replace(told, to=())


def test_what_is_not_known_of_the_machine_is_left_open() -> None:
    (record,) = heartbeat_records(heartbeat(1, cpu=None, memory=None))

    read = read_record(record, CLUSTER)

    assert isinstance(read, Heartbeat)
    assert (read.cpu, read.memory) == (None, None)


def test_many_units_take_several_records_with_the_largest_backlog_first() -> None:
    units = [unit(f"t{number}", backlog_seconds=float(number)) for number in range(300)]

    records = heartbeat_records(heartbeat(1, *units))

    read: list[Any] = [read_record(record, CLUSTER) for record in records]
    assert max(map(len, records)) <= MAX_RECORD_BYTES
    assert [(one.part, one.parts) for one in read] == [
        (number, len(records)) for number in range(1, len(records) + 1)
    ]
    told = [name for one in read for name in names(one.units)]
    assert told == [f"t{number}" for number in reversed(range(300))]
    assert {one.left_out for one in read} == {0}


def test_units_for_which_there_is_no_room_are_counted() -> None:
    units = [unit(f"t{number}", backlog_seconds=float(number)) for number in range(3000)]

    records = heartbeat_records(heartbeat(1, *units))

    read: list[Any] = [read_record(record, CLUSTER) for record in records]
    assert len(records) == MAX_PARTS
    assert max(map(len, records)) <= MAX_RECORD_BYTES
    told = [name for one in read for name in names(one.units)]
    assert told == [f"t{number}" for number in reversed(range(3000))][: len(told)]
    assert {one.left_out for one in read} == {3000 - len(told)}
    assert len(told) > 500


def test_a_name_that_fills_a_record_takes_no_place_from_others() -> None:
    records = heartbeat_records(heartbeat(1, unit("x" * MAX_RECORD_BYTES), unit("orders")))

    read: list[Any] = [read_record(record, CLUSTER) for record in records]
    assert [(names(one.units), one.left_out) for one in read] == [(["orders"], 1)]


def test_fields_of_a_later_version_of_this_program_are_passed_over() -> None:
    told = heartbeat(7, unit("orders"))
    written = json.loads(heartbeat_records(told)[0])
    written["new"] = {"a": [1]}
    written["units"][0]["new"] = None

    assert read_record(json.dumps(written).encode(), CLUSTER) == told


def test_a_unit_tells_its_state_and_why_its_work_waits() -> None:
    ill = unit("orders", state="suspended", reason="null_key: a key column is NULL (file 7)")
    told = heartbeat(7, ill, unit("users"))

    (record,) = heartbeat_records(told)

    assert read_record(record, CLUSTER) == told
    assert [one.waits for one in told.units] == [True, False]
    assert json.loads(record)["minor"] == MINOR


def test_a_unit_of_an_earlier_version_tells_no_state() -> None:
    written = json.loads(heartbeat_records(heartbeat(7, unit()))[0])
    del written["minor"], written["units"][0]["state"]

    read = read_record(json.dumps(written).encode(), CLUSTER)

    assert read == heartbeat(7, unit(state=""))


def test_a_reason_is_one_short_line_whatever_is_in_it() -> None:
    ill = unit(state="suspended", reason="\x1b[2J\n\ud800" + "é" * MAX_RECORD_BYTES)

    records = heartbeat_records(heartbeat(1, ill, *(unit(f"t{one}") for one in range(200))))

    read: list[Any] = [read_record(record, CLUSTER) for record in records]
    assert max(map(len, records)) <= MAX_RECORD_BYTES
    (reason,) = [one.reason for part in read for one in part.units if one.waits]
    assert len(reason) == MAX_REASON
    assert reason.isprintable()


def test_many_units_that_wait_leave_room_for_others() -> None:
    units = [unit(f"t{one}", state="suspended", reason="x" * 500) for one in range(900)]

    records = heartbeat_records(heartbeat(1, *units))

    read: list[Any] = [read_record(record, CLUSTER) for record in records]
    told = sum(len(one.units) for one in read)
    assert max(map(len, records)) <= MAX_RECORD_BYTES
    assert told > 200
    assert {one.left_out for one in read} == {900 - told}


WRONG_FIELDS = [
    ("node", None), ("node", ""), ("node", 5), ("node", "x" * 513), ("node", "a\nb"),
    ("node", "\x1b[2J"), ("node", "\ud800"), ("node", ["n1"]), ("incarnation", {}),
    ("seq", -1), ("seq", 1.0), ("seq", "1"), ("seq", True), ("seq", 2**63),
    ("at", "yesterday"), ("at", "2026-01-01T00:00:00"), ("at", 5),
    ("at", "0001-01-01T00:00:00+14:00"),
    ("state", None), ("cpu", "much"), ("cpu", -0.1), ("memory", 1e300), ("memory", True),
    ("part", 0), ("part", 2), ("parts", 99), ("parts", None), ("left_out", -1),
    ("units", None), ("units", {}), ("units", [[]]), ("units", [{}]), ("units", "sales"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), WRONG_FIELDS)
def test_a_field_that_is_wrong_is_seen(field: str, value: object) -> None:
    written = json.loads(heartbeat_records(heartbeat(7, unit()))[0])

    record = json.dumps({**written, field: value}).encode()

    assert read_record(record, CLUSTER) is Skipped.FIELD


@pytest.mark.parametrize(
    ("field", "value"),
    [("task", 1), ("name", "a\0b"), ("epoch", -1), ("epoch", 0.5), ("load", "1"), ("load", -1),
     ("lag_seconds", None), ("backlog_seconds", True), ("backlog_seconds", 1e11),
     ("state", None), ("state", ["running"]), ("state", ""), ("state", "x" * 513),
     ("reason", 5), ("reason", "a\nb"), ("reason", "\x1b[2J"), ("reason", {"a": 1})],
)  # fmt: skip
def test_a_field_of_a_unit_that_is_wrong_is_seen(field: str, value: object) -> None:
    written = json.loads(heartbeat_records(heartbeat(7, unit()))[0])
    written["units"][0][field] = value

    assert read_record(json.dumps(written).encode(), CLUSTER) is Skipped.FIELD


@pytest.mark.parametrize("field", ["type", "node", "incarnation", "seq", "at", "state", "units"])
def test_a_field_that_is_missing_is_seen(field: str) -> None:
    written = json.loads(heartbeat_records(heartbeat(7, unit()))[0])
    del written[field]

    assert read_record(json.dumps(written).encode(), CLUSTER) is Skipped.FIELD


def _of_cluster(**parts: object) -> bytes:
    written = json.loads(heartbeat_records(heartbeat(7, unit()))[0])
    return json.dumps({**written, **parts}).encode()


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (b"", Skipped.NOT_JSON),
        (b"\xff\xfe\x00", Skipped.NOT_JSON),
        (b"[1]", Skipped.NOT_JSON),
        (b'"node"', Skipped.NOT_JSON),
        (b"null", Skipped.NOT_JSON),
        (b"[" * MAX_RECORD_BYTES, Skipped.NOT_JSON),
        (b'{"v": 1, "v": 1}', Skipped.NOT_JSON),
        (b'{"v": NaN}', Skipped.NOT_JSON),
        (b'{"v": -Infinity}', Skipped.NOT_JSON),
        (b'{"v": 1' + b"0" * 9000 + b"}", Skipped.NOT_JSON),
        (b'{"type": "doctor"}', Skipped.VERSION),
        (b'{"format_version": "1.0", "node": "n1"}', Skipped.VERSION),
        (_of_cluster(v=2), Skipped.VERSION),
        (_of_cluster(v=True), Skipped.VERSION),
        (_of_cluster(v="1"), Skipped.VERSION),
        (_of_cluster(cluster=["shop"]), Skipped.CLUSTER),
        (_of_cluster(cluster="other", node=7), Skipped.CLUSTER),
        (_of_cluster(type="order"), Skipped.TYPE),
        (_of_cluster(type=["node"]), Skipped.TYPE),
        (_of_cluster(pad="x" * MAX_RECORD_BYTES), Skipped.HUGE),
        (_of_cluster(type="planned", to="n1.1"), Skipped.FIELD),
        (_of_cluster(type="planned", to=["n1.1"] * 65), Skipped.FIELD),
    ],
)
def test_what_is_no_message_of_this_cluster_is_told_apart(record: bytes, why: Skipped) -> None:
    assert read_record(record, CLUSTER) is why


def test_only_the_sender_of_another_clusters_record_is_read() -> None:
    record = _of_cluster(cluster="other", units="whatever a later version writes")

    read = read_record(record, CLUSTER)

    assert read == OtherClusterRecord(Sender("other", "n1", "n1.1"))
