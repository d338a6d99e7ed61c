"""Change identifiers of Debezium events: their position in the commit order of the source.

| source | digits |
|---|---|
| PostgreSQL | last commit LSN 16 (else LSN), order in the transaction 19 (else LSN) |
| MySQL, MariaDB | number of the binlog file 10, position 13, row 12 |
| SQL Server, Db2 | commit LSN 25, change LSN 25; the tail has the serial number of the event, 10 |
| Oracle | commit SCN 16 (else SCN), order in the transaction 19, else SCN 19 and SSN 10 |
| MongoDB | `ts_ms` 16, `ord` 19 |

Snapshot reads (`r`) have order 0, so they sort before all events of later transactions. In
PostgreSQL the LSN alone is not monotonic, because transactions interleave in the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from polynya.formats.errors import RecordError
from polynya.formats.values.sequence import OrderPosition

_MAX_DIGITS = 40
#: What PostgreSQL's connector writes, without the detour of a parser.
_SEQUENCE = re.compile(r'\["([0-9]{1,20})","[0-9]{1,20}"\]\Z', re.ASCII)


def native_position(value: Mapping[str, Any]) -> OrderPosition | None:
    """The place of an event; None when its connector has no order that we know.

    Args:
        value: payload of the event.

    Raises:
        RecordError: bad_position, when the numbers of the source make no sense.
    """
    source = value.get("source")
    if not isinstance(source, dict):
        return None
    reader = _READERS.get(str(source.get("connector")))
    return None if reader is None else reader(value, source)


def log_of(value: Mapping[str, Any]) -> str:
    """The name of the log that an event is in: base name of binlog files, `#`, server, GTID's.

    Empty where files of a log have no names.
    """
    source = value.get("source")
    if not isinstance(source, dict) or not source.get("file"):
        return ""
    base, server = str(source["file"]).rpartition(".")[0], source.get("server_id")
    # `uuid:number` of MySQL, `domain-server-number` of MariaDB.
    origin = str(source.get("gtid") or "").replace(":", "-").rpartition("-")[0]
    return f"{base}#{server}{origin and '/'}{origin}" if server else base


def belongs_there(value: Mapping[str, Any]) -> bool:
    """Whether the time of an event belongs to its position.

    The reads of an incremental snapshot are made at any time, and stand where the stream just is.
    """
    if value["op"] != "r":
        return True
    source = value.get("source")
    return not isinstance(source, dict) or source.get("snapshot") != "incremental"


def _postgresql(value: Mapping[str, Any], source: Mapping[str, Any]) -> OrderPosition | None:
    lsn = _number(source.get("lsn"), "lsn")
    commit = _last_commit(source.get("sequence"))
    commit = lsn if commit is None else commit
    if commit is None:
        return None
    order = 0 if value["op"] == "r" else _total_order(value)
    if order is None:
        order = lsn
    if order is None:
        return None
    return _digits(commit, 16) + _digits(order, 19), None


def _last_commit(sequence: Any) -> int | None:
    if sequence is None:
        return None
    plain = _SEQUENCE.match(sequence) if isinstance(sequence, str) else None
    if plain is not None:
        return int(plain[1])
    try:
        commit = json.loads(sequence)[0] if isinstance(sequence, str) else sequence[0]
    except (ValueError, LookupError, TypeError):
        raise RecordError("bad_position", f"source.sequence {str(sequence)[:60]!r}") from None
    return _number(commit, "sequence")


def _binlog(_: Mapping[str, Any], source: Mapping[str, Any]) -> OrderPosition | None:
    file, position = source.get("file"), _number(source.get("pos"), "pos")
    if not file or position is None:
        return None
    number = _number(str(file).rpartition(".")[2], "file")
    row = _number(source.get("row"), "row") or 0
    return _digits(number or 0, 10) + _digits(position, 13) + _digits(row, 12), None


def _hexadecimal_lsn(_: Mapping[str, Any], source: Mapping[str, Any]) -> OrderPosition | None:
    commit, change = _lsn(source.get("commit_lsn")), _lsn(source.get("change_lsn"))
    if commit is None:
        return None
    serial = _number(source.get("event_serial_no"), "event_serial_no") or 0
    return _digits(commit, 25) + _digits(change or 0, 25), _digits(serial, 10)


def _lsn(text: Any) -> int | None:
    """`0000002a:00000b10:0004` as one number of 80 bits."""
    if text is None or text == "NULL":
        return None
    parts = str(text).split(":")
    try:
        block, offset, slot = (int(part, 16) for part in parts)
    except ValueError:
        raise RecordError(
            "bad_position", f"{str(text)[:60]!r} is not a log sequence number"
        ) from None
    if not (0 <= block < 1 << 32 and 0 <= offset < 1 << 32 and 0 <= slot < 1 << 16):
        raise RecordError("bad_position", f"{text!r} is out of range")
    return (block << 48) | (offset << 16) | slot


def _oracle(value: Mapping[str, Any], source: Mapping[str, Any]) -> OrderPosition | None:
    scn = _number(source.get("scn"), "scn")
    commit = _number(source.get("commit_scn"), "commit_scn")
    commit = scn if commit is None else commit
    if commit is None:
        return None
    if value["op"] == "r":
        return _digits(commit, 16) + _digits(0, 19), None
    order = _total_order(value)
    if order is not None:
        return _digits(commit, 16) + _digits(order, 19), None
    serial = _number(source.get("ssn"), "ssn") or 0
    return _digits(commit, 16) + _digits(scn or 0, 19) + _digits(serial, 10), None


def _mongodb(_: Mapping[str, Any], source: Mapping[str, Any]) -> OrderPosition | None:
    time = _number(source.get("ts_ms"), "ts_ms")
    if time is None:
        return None
    return _digits(time, 16) + _digits(_number(source.get("ord"), "ord") or 0, 19), None


def _total_order(value: Mapping[str, Any]) -> int | None:
    transaction = value.get("transaction")
    if not isinstance(transaction, dict):
        return None
    return _number(transaction.get("total_order"), "total_order")


def _number(value: Any, name: str) -> int | None:
    """A whole number, also as text. Raises RecordError bad_position."""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _MAX_DIGITS:
        return int(value)
    raise RecordError("bad_position", f"source {name} is {str(value)[:60]!r}, not a whole number")


def _digits(number: int, width: int) -> str:
    text = f"{number:0{width}d}"
    if number < 0 or len(text) > width:
        raise RecordError("bad_position", f"{number} does not fit {width} digits")
    return text


_READERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], OrderPosition | None]] = {
    "postgresql": _postgresql,
    "mysql": _binlog,
    "mariadb": _binlog,
    "sqlserver": _hexadecimal_lsn,
    "db2": _hexadecimal_lsn,
    "oracle": _oracle,
    "mongodb": _mongodb,
}
