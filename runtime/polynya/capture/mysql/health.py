"""Findings of a connection test, and whether the binlog still holds the position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from polynya.capture.mysql.session import MysqlSession, literal
from polynya.capture.mysql.snapshot import LOAD_FILE, MARIADB, gtids_at, log_files
from polynya.capture.source import Access, ConnectionFinding, Lag, Offset
from polynya.model.errors import OperationError, PolynyaError

_OLDEST: Final = {"mariadb": (10, 5), "mysql": (8, 0)}
_DAY: Final = 86_400
_RIGHTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    # Each by all the words that a server of that kind has for it, first the one to be granted.
    "mariadb": {
        "read the stream": ("REPLICATION SLAVE", "REPLICATION REPLICA"),
        "see the binlog": ("BINLOG MONITOR", "REPLICATION CLIENT"),
    },
    "mysql": {
        "read the stream": ("REPLICATION SLAVE",),
        "see the binlog": ("REPLICATION CLIENT",),
    },
}
_SETTINGS: Final = (
    "version", "log_bin", "binlog_format", "binlog_row_image", "log_bin_compress",
    "expire_logs_days", "binlog_expire_logs_seconds", "log_slave_updates", "gtid_slave_pos",
    "gtid_binlog_pos", "gtid_mode", "binlog_row_value_options", "binlog_transaction_compression",
)  # fmt: skip


def findings_of(access: Access) -> tuple[ConnectionFinding, ...]:
    """What is well, and what is not; a failure is the last finding."""
    findings: list[ConnectionFinding] = []
    try:
        session = MysqlSession(access)
        try:
            findings.append(
                ConnectionFinding(
                    ok=True, what=f"{access.user} reaches {access.host}:{access.port}"
                )
            )
            settings = binlog_settings(session)
            findings += [*_of_tls(session, access), *_of_version(access.type, settings)]
            findings += _of_changes(session, access.type, settings) if access.follows else []
            findings.append(_of_reading(_granted(session)))
        finally:
            session.close()
    except PolynyaError as error:
        findings.append(ConnectionFinding(ok=False, what=error.message, fix=error.fix or ""))
    return tuple(findings)


def binlog_settings(session: MysqlSession) -> dict[str, str]:
    """What the server has set, as far as a capture depends on it."""
    names = ", ".join(f"'{name}'" for name in _SETTINGS)
    rows = session.rows(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
    return {str(name): str(value) for name, value in rows}


def of_binlog(settings: Mapping[str, str]) -> Iterator[ConnectionFinding]:
    """Settings without which changes are missing from the binlog, or are not whole."""
    yield _is(settings, "log_bin", "ON", "start the server with log_bin")
    yield _is(
        settings, "binlog_format", "ROW", "SET GLOBAL binlog_format = 'ROW', and in its settings"
    )
    full = "SET GLOBAL binlog_row_image = 'FULL', and in its settings"
    yield _is(settings, "binlog_row_image", "FULL", full)
    if "log_bin_compress" in settings:
        plain = "SET GLOBAL log_bin_compress = OFF, and in its settings: Debezium passes over rows"
        yield _is(settings, "log_bin_compress", "OFF", f"{plain} that are compressed")
    yield from _of_binlog_of_mysql(settings)


def _of_binlog_of_mysql(settings: Mapping[str, str]) -> Iterator[ConnectionFinding]:
    """Settings that MariaDB does not have, and some of them not each MySQL."""
    if "gtid_mode" in settings:
        yield _is(
            settings, "gtid_mode", "ON", "gtid_mode = ON and enforce_gtid_consistency = ON: without"
            " GTIDs MySQL does not tell which transactions a load has"
        )  # fmt: skip
    if "binlog_row_value_options" in settings:
        yield _is(
            settings, "binlog_row_value_options", "", "SET GLOBAL binlog_row_value_options = '', "
            "and in its settings: Debezium passes over parts of JSON documents"
        )  # fmt: skip
    if "binlog_transaction_compression" in settings:
        yield _is(
            settings, "binlog_transaction_compression", "OFF", "SET GLOBAL "
            "binlog_transaction_compression = OFF, and in its settings: the rows of a compressed "
            "transaction have no places of their own in the binlog"
        )  # fmt: skip


def _of_filters(
    session: MysqlSession, kind: str, settings: Mapping[str, str]
) -> Iterator[ConnectionFinding]:
    row = session.first(status_statement(kind, _number_of(settings)))
    if row is not None and (row[2] or row[3]):
        yield ConnectionFinding(
            ok=False, what=f"the binlog leaves databases out: only {row[2] or 'all'}, "
            f"not {row[3] or 'none'}",
            fix="take binlog_do_db and binlog_ignore_db out of the server's settings, or capture "
            "no other database",
        )  # fmt: skip


#: The version of MySQL that brought the new word; the old one ends with 8.4.
_BINARY_LOG_STATUS: Final = (8, 2)


def status_statement(kind: str, version: tuple[int, ...]) -> str:
    """The statement by which a server tells the end of its binlog, and the filters of it."""
    is_new = kind != MARIADB and version >= _BINARY_LOG_STATUS
    return "SHOW BINARY LOG STATUS" if is_new else "SHOW MASTER STATUS"


def _number_of(settings: Mapping[str, str]) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", settings.get("version", ""))[:2])


def _of_tls(session: MysqlSession, access: Access) -> Iterator[ConnectionFinding]:
    row = session.first("SHOW STATUS LIKE 'Ssl_version'")
    if row is not None and row[1]:
        trust = "the certificate is verified" if access.tls == "verify" else "not verified"
        yield ConnectionFinding(ok=True, what=f"{row[1]}, {trust}")
    else:
        yield ConnectionFinding(ok=True, what="no TLS, as the connection says")


def _of_version(kind: str, settings: Mapping[str, str]) -> Iterator[ConnectionFinding]:
    version = settings.get("version", "")
    number = _number_of(settings)
    is_this = ("MariaDB" in version) == (kind == MARIADB)
    oldest = ".".join(map(str, _OLDEST[kind]))
    yield ConnectionFinding(
        is_this and number >= _OLDEST[kind], f"version {version}",
        f"a connection of type {kind} needs that server, {oldest} or later",
    )  # fmt: skip


def _of_changes(
    session: MysqlSession, kind: str, settings: Mapping[str, str]
) -> Iterator[ConnectionFinding]:
    """What only a capture needs that follows the binlog."""
    yield from _of_settings(kind, settings)
    rights = list(_of_rights(kind, _granted(session)))
    yield from rights
    if all(right.ok for right in rights):
        yield from _of_filters(session, kind, settings)


def _of_settings(kind: str, settings: Mapping[str, str]) -> Iterator[ConnectionFinding]:
    yield from of_binlog(settings)
    yield _of_retention(settings)
    if settings.get("gtid_slave_pos"):
        yield _is(settings, "log_slave_updates", "ON", "a replica has to log what it replicates")
    if kind == MARIADB:
        there = settings.get("gtid_binlog_pos", "")
        what = f"the binlog is at {there}" if there else "the binlog has no transaction yet"
        yield ConnectionFinding(bool(there), what, "change a row")


def _is(settings: Mapping[str, str], name: str, wanted: str, fix: str) -> ConnectionFinding:
    value = settings.get(name, "not there")
    return ConnectionFinding(value == wanted, f"{name} is {value or 'empty'}", fix)


def _of_retention(settings: Mapping[str, str]) -> ConnectionFinding:
    days = float(settings.get("expire_logs_days") or 0)
    seconds = float(settings.get("binlog_expire_logs_seconds") or days * _DAY)
    if seconds == 0:
        return ConnectionFinding(ok=True, what="the binlog is kept until somebody deletes it")
    return ConnectionFinding(
        seconds >= _DAY, f"the binlog is kept for {seconds / 3600:.0f} hours",
        "keep it for longer than a capture may stand still: binlog_expire_logs_seconds = 259200",
    )  # fmt: skip


def _granted(session: MysqlSession) -> str:
    return " ".join(str(row[0]).upper() for row in session.rows("SHOW GRANTS"))


def _of_rights(kind: str, granted: str) -> Iterator[ConnectionFinding]:
    whole = re.search(r"\bALL PRIVILEGES ON \*\.\*", granted) is not None
    for purpose, words in _RIGHTS[kind].items():
        has = whole or any(word in granted for word in words)
        yield ConnectionFinding(
            has, f"the right {words[0]}, to {purpose}",
            f"GRANT {words[0]} ON *.* TO the user of the connection",
        )  # fmt: skip


def _of_reading(granted: str) -> ConnectionFinding:
    may_read = re.search(r"\b(SELECT|ALL PRIVILEGES)\b[^;]*? ON ", granted) is not None
    return ConnectionFinding(
        may_read, "the right SELECT, to load tables",
        "GRANT SELECT ON the tables TO the user of the connection",
    )  # fmt: skip


#: With so many later files the oldest one is what the server deletes next.
_MANY_FILES: Final = 3


def lag_of(session: MysqlSession, offset: Offset) -> Lag:
    """Bytes and seconds from an offset to the end of the binlog."""
    files = log_files(session)
    names = [name for name, _ in files]
    if offset["file"] not in names:
        return Lag(None, None, (f"{offset['file']} is not on the server any more",))
    at = names.index(str(offset["file"]))
    behind = sum(size for _, size in files[at:]) - int(offset["pos"])
    notes: tuple[str, ...] = ()
    if at == 0 and len(files) > _MANY_FILES:
        notes = (f"the stream is in {names[0]}, which the server deletes next",)
    return Lag(max(behind, 0), 0.0 if behind <= 0 else _age(session, offset), notes)


def _age(session: MysqlSession, offset: Offset) -> float | None:
    """How old the last event before an offset is, by the server's clock."""
    if "ts_sec" not in offset:
        return None
    (now,) = session.rows("SELECT UNIX_TIMESTAMP()")[0]
    return max(float(now or 0) - float(offset["ts_sec"]), 0.0)


def lost_of(session: MysqlSession, connector: str, offset: Offset) -> str | None:
    """Why the binlog does not continue from an offset; None: it does."""
    files = dict(log_files(session))
    file, position = str(offset["file"]), int(offset["pos"])
    if file.startswith(LOAD_FILE):
        return "what has landed last is a load without changes, and has no place in the binlog"
    if file not in files:
        first = min(files, default="none")
        return f"the server has deleted {file} of its binlog; the oldest that it has is {first}"
    if position > files[file]:
        return f"{file} of the binlog ends before {position}: it was reset, or it is another server"
    if connector == MARIADB and "gtids" in offset:
        there = gtids_at(session, file, position)
        if there is None or _numbers(there) != _numbers(str(offset["gtids"])):
            return (
                f"at {position} in {file} the binlog is after {there or 'nothing'}, not after "
                f"{offset['gtids']}: it is the log of another server"
            )
        return _taken_over(session, str(offset["gtids"]))
    if connector == MARIADB:
        return None
    return _lost_of_mysql(session, offset, size=files[file])


_GTID: Final = re.compile(r"GTID_NEXT= '([^']+)'")
_NO_EVENT_THERE: Final = "(error 1220)"


def _lost_of_mysql(session: MysqlSession, offset: Offset, *, size: int) -> str | None:
    """What GTIDs and events say: whether the place is in the log of the server that was read."""
    gtids = str(offset.get("gtids") or "")
    if not gtids:
        return "what has landed last has no GTIDs, so that its place cannot be found again"
    has_all, purged = session.rows(
        f"SELECT GTID_SUBSET({literal(gtids)}, @@GLOBAL.gtid_executed),"
        f" GTID_SUBTRACT(@@GLOBAL.gtid_purged, {literal(gtids)})"
    )[0]
    if has_all != "1":
        return f"the server does not have all of {gtids}: it was reset, or it is another one"
    if purged:
        lacking = "".join(str(purged).split())
        return f"the server has deleted transactions that have not landed: {lacking}"
    return _other_log(session, offset, gtids, size=size)


def _other_log(session: MysqlSession, offset: Offset, gtids: str, *, size: int) -> str | None:
    """Whether a file of MySQL's binlog is another one than that which was read to a position.

    What the file begins after has to have been read, and what follows the position has not.
    """
    file, position = str(offset["file"]), int(offset["pos"])
    other = f"{file} of the binlog is another one than the file that was read: it is another server"
    begins = session.rows(f"SHOW BINLOG EVENTS IN {_text(file)} LIMIT 2", "reading the binlog")
    before = "".join(str(begins[1][5] or "").split()) if len(begins) > 1 else ""
    try:
        event = session.first(
            f"SHOW BINLOG EVENTS IN {_text(file)} FROM {position} LIMIT 1", "reading the binlog"
        )
    except OperationError as error:
        if _NO_EVENT_THERE not in error.message:
            raise
        return other
    if event is None and position < size:
        return other
    found = None if event is None else _GTID.search(str(event[5]))
    told = [] if found is None else [found[1]]
    (follows,) = session.rows(
        f"SELECT GTID_SUBSET({literal(before)}, {literal(gtids)})"
        + "".join(f" AND NOT GTID_SUBSET({literal(one)}, {literal(gtids)})" for one in told)
    )[0]
    return None if follows == "1" else other


def _text(file: str) -> str:
    """The name of a file as MySQL's SHOW takes it, which has no other constants."""
    return "'" + file.replace("\\", "\\\\").replace("'", "''") + "'"


def _taken_over(session: MysqlSession, gtids: str) -> str | None:
    """Whether another server has written on where one was read, as after a switch of the primary.

    Debezium does not continue there.
    """
    (now,) = session.rows("SELECT @@gtid_binlog_pos")[0]
    servers = dict(_domain_and_server(gtid) for gtid in _numbers(str(now or "")))
    for gtid in sorted(_numbers(gtids)):
        domain, server = _domain_and_server(gtid)
        if servers.get(domain, server) != server:
            return (
                f"after {gtid} the transactions of domain {domain} are those of server "
                f"{servers[domain]}: another one has taken over"
            )
    return None


def _domain_and_server(gtid: str) -> tuple[str, str]:
    domain, server, _ = gtid.split("-")
    return domain, server


def _numbers(gtids: str) -> set[str]:
    return {gtid.strip() for gtid in gtids.split(",") if gtid.strip()}
