"""What comes after a reset of a binlog stays later than what came before it."""

from __future__ import annotations

import json

from polynya.capture.landing.log import change_identifier
from polynya.capture.landing.position import in_epoch, next_epoch, source_in_epoch
from polynya.formats.debezium.order import native_position


def line(file: str, pos: int, after: dict[str, str]) -> bytes:
    source = {"connector": "mariadb", "file": file, "pos": pos, "row": 0}
    value = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": 1}
    return json.dumps({"key": None, "value": value}, separators=(",", ":")).encode() + b"\n"


def test_an_epoch_begins_where_places_go_back() -> None:
    late, early = {"file": "binlog.000012", "pos": 900}, {"file": "binlog.000001", "pos": 4}

    assert next_epoch("mariadb", 0, early, late) == 0
    assert next_epoch("mariadb", 0, late, early) == 1
    assert next_epoch("mariadb", 1, late, early) == 2
    assert next_epoch("postgresql", 0, {"lsn": 5}, {"lsn": 4}) == 0


def test_events_of_a_later_epoch_are_later_and_keep_their_values() -> None:
    row = {"file": "binlog.000099", "text": '"file":"binlog.000099"'}
    before, after = line("binlog.000099", 900, row), line("binlog.000001", 4, row)

    (raised,) = (json.loads(one) for one in in_epoch(after, 1).splitlines())

    assert raised["value"]["after"] == row
    assert raised["value"]["source"]["file"] == "binlog.100000001"
    assert native_position(raised["value"]) > native_position(json.loads(before)["value"])  # type: ignore[operator]
    assert in_epoch(before, 0) == before


def test_a_view_stands_in_the_epoch_of_its_capture() -> None:
    before = {"connector": "mariadb", "file": "binlog.000099", "pos": 900, "row": 0}
    after = {**before, "file": "binlog.000001", "pos": 4}

    place = change_identifier(source_in_epoch(after, 1))

    assert place is not None
    assert place > str(change_identifier(before))
    assert source_in_epoch({"lsn": 5}, 1) == {"lsn": 5}


def test_the_text_of_a_statement_is_not_touched() -> None:
    source = {"connector": "mariadb", "file": "binlog.000007", "pos": 4}
    text = "ALTER TABLE t COMMENT 'x'"
    value = {"source": source, "ddl": text, "tableChanges": [{"file": "binlog.000007"}]}
    given = json.dumps({"key": None, "value": value}, separators=(",", ":")).encode() + b"\n"

    (raised,) = (json.loads(one) for one in in_epoch(given, 2).splitlines())

    assert raised["value"]["source"]["file"] == "binlog.200000007"
    assert raised["value"]["tableChanges"] == value["tableChanges"]
