"""Change identifiers of every connector sort as the source committed."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.formats.debezium.order import native_position
from polynya.formats.errors import RecordError
from tests.formats.debezium.builders import a_source


def _place(op: str = "c", order: int | None = 1, **source: Any) -> tuple[str, str]:
    transaction = None if order is None else {"total_order": order}
    place = native_position({"op": op, "source": a_source(**source), "transaction": transaction})
    assert place is not None
    assert 35 <= len(place[0]) <= 50
    return place[0], place[1] or ""


def _postgres(
    commit: int | None, lsn: int | None, order: int | None = 1, op: str = "c"
) -> tuple[str, str]:
    first = "null" if commit is None else f'"{commit}"'
    return _place(op, order, sequence=f'[{first},"{lsn}"]', lsn=lsn)


def test_postgresql_follows_commits_not_log_positions() -> None:
    places = [
        _postgres(None, 50, op="r", order=None),
        _postgres(None, 60),
        _postgres(None, 61, 2),
        _postgres(100, 150),
        _postgres(100, 90, 2),
        _postgres(200, 80, 1),
        _postgres(300, None, None, "r"),
        _postgres(300, 301, 1),
    ]

    assert places == sorted(places)
    assert len(set(places)) == len(places)


def test_postgresql_without_transaction_metadata_uses_the_log_position() -> None:
    assert _postgres(100, 150, None) == ("0000000000000100" + "150".zfill(19), "")


def test_the_binlog_is_file_position_row() -> None:
    def place(file: str, pos: int, row: int) -> tuple[str, str]:
        return _place(connector="mysql", file=file, pos=pos, row=row)

    places = [
        place("binlog.000009", 99999, 0),
        place("binlog.000010", 4, 0),
        place("binlog.000010", 4, 1),
        place("binlog.000010", 500, 0),
        place("binlog.1000000", 4, 0),
    ]

    assert places == sorted(places)
    assert places[1] == ("0000000010" + "4".zfill(13) + "0" * 12, "")


@pytest.mark.parametrize("connector", ["sqlserver", "db2"])
def test_hexadecimal_log_positions(connector: str) -> None:
    def place(commit: str, change: str | None, serial: Any) -> tuple[str, str]:
        return _place(
            connector=connector, commit_lsn=commit, change_lsn=change, event_serial_no=serial
        )

    places = [
        place("00000025:00000d98:00a2", None, None),
        place("00000027:00000758:0005", "00000027:00000758:0003", "1"),
        place("00000027:00000758:0005", "00000027:00000758:0003", 2),
        place("00000027:00000758:0005", "00000027:00000758:0004", 1),
        place("ffffffff:ffffffff:ffff", "ffffffff:ffffffff:ffff", 1),
    ]

    assert places == sorted(places)
    assert len(set(places)) == len(places)


def test_oracle_orders_by_commit() -> None:
    places = [
        _place("r", None, connector="oracle", scn="100"),
        _place("c", 1, connector="oracle", scn="900", commit_scn="950"),
        _place("c", 2, connector="oracle", scn="120", commit_scn="950"),
        _place("c", None, connector="oracle", scn="955", commit_scn="990", ssn=0),
        _place("c", None, connector="oracle", scn="955", commit_scn="990", ssn=1),
    ]

    assert places == sorted(places)
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(
    "source",
    [
        {"lsn": "x", "sequence": None},
        {"lsn": 1.5, "sequence": None},
        {"lsn": True, "sequence": None},
        {"sequence": "{}"},
        {"sequence": "[]"},
        {"connector": "mysql", "file": "binlog", "pos": 4},
        {"connector": "mysql", "file": "binlog.01", "pos": 10**13},
        {"connector": "sqlserver", "commit_lsn": "1:2"},
        {"connector": "sqlserver", "commit_lsn": "1ffffffff:0:0"},
        {"connector": "mongodb", "ts_ms": 10**17},
    ],
)
def test_numbers_that_make_no_sense_are_refused(source: dict[str, Any]) -> None:
    with pytest.raises(RecordError) as caught:
        _place(**source)
    assert caught.value.rule == "bad_position"


def test_an_unknown_connector_has_no_position() -> None:
    assert native_position({"op": "c", "source": {"connector": "vitess"}}) is None
    assert native_position({"op": "c"}) is None
