"""How far a binlog is beyond a place, and whether the place is still in it."""

from __future__ import annotations

from typing import Final

from polynya.gateway.mysql.looks import LOAD_FILE
from polynya.gateway.mysql.moments import MARIADB, gtids_at, log_files
from polynya.gateway.mysql.session import Session
from polynya.gateway.source import Lag, Offset

#: With so many later files the oldest one is what the server deletes next.
_MANY_FILES: Final = 3


def lag_of(session: Session, offset: Offset) -> Lag:
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


def _age(session: Session, offset: Offset) -> float | None:
    """How old the last event before an offset is, by the server's clock."""
    if "ts_sec" not in offset:
        return None
    (now,) = session.rows("SELECT UNIX_TIMESTAMP()")[0]
    return max(float(now or 0) - float(offset["ts_sec"]), 0.0)


def lost_of(session: Session, connector: str, offset: Offset) -> str | None:
    """Why the binlog does not go on from an offset; None: it does."""
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
    return None


def _taken_over(session: Session, gtids: str) -> str | None:
    """Whether another server has written on where one was read, as after a switch of the primary.

    Debezium does not go on there.
    """
    (now,) = session.rows("SELECT @@gtid_binlog_pos")[0]
    servers = dict(_domain_and_server(one) for one in _numbers(str(now or "")))
    for one in sorted(_numbers(gtids)):
        domain, server = _domain_and_server(one)
        if servers.get(domain, server) != server:
            return (
                f"after {one} the transactions of domain {domain} are those of server "
                f"{servers[domain]}: another one has taken over"
            )
    return None


def _domain_and_server(gtid: str) -> tuple[str, str]:
    domain, server, _ = gtid.split("-")
    return domain, server


def _numbers(gtids: str) -> set[str]:
    return {one.strip() for one in gtids.split(",") if one.strip()}
