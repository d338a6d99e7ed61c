"""Moments of a server: a consistent view in a session, and where it is in the binlog."""

from __future__ import annotations

from typing import Any, Final

from polynya.gateway.mysql.quoting import literal
from polynya.gateway.mysql.rows import Place
from polynya.gateway.mysql.session import Session
from polynya.gateway.source import Access
from polynya.model.errors import OperationError

MARIADB: Final = "mariadb"


def open_view(session: Session, connector: str) -> Place:
    """Begin a transaction that sees one moment; no lock is taken.

    MariaDB says where exactly that moment is in its binlog. MySQL does not: there it is a place
    shortly before, after which the stream repeats some changes that the view has already.

    Raises:
        OperationError: POLYNYA-GTW-050, the server has no binlog.
    """
    place = None if connector == MARIADB else newest_place(session)
    begin_view(session)
    place = place or place_of_view(session)
    if place is None:
        raise OperationError(
            "POLYNYA-GTW-050", "the server has no binlog", state="nothing was read",
            fix="start it with log_bin, or load without changes: `update_method: reload`",
        )  # fmt: skip
    return Place(connector, *place, clock(session))


def begin_view(session: Session) -> None:
    """Begin a transaction that sees one moment, wherever that is in a binlog."""
    session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")


def place_of_view(session: Session) -> tuple[str, int] | None:
    """Where the view of a session is in MariaDB's binlog; None: there is none."""
    rows = session.rows("SHOW STATUS LIKE 'Binlog_snapshot_%'")
    said = {str(name): str(value) for name, value in rows}
    file = said.get("Binlog_snapshot_file")
    return (file, int(said["Binlog_snapshot_position"])) if file else None


def clock(session: Session) -> int:
    """The server's clock, in milliseconds since 1970."""
    (millis,) = session.rows("SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)")[0]
    return int(millis or 0)


def end_view(session: Session) -> None:
    """End the transaction of a view."""
    session.run("ROLLBACK")


def has_transactions(session: Session, engine: str) -> bool:
    """Whether a view sees the tables of an engine as they were at its moment."""
    found = session.rows(
        f"SELECT TRANSACTIONS FROM information_schema.ENGINES WHERE ENGINE = {literal(engine)}"
    )
    return found == [("YES",)]


def offset_at(session: Session, access: Access, place: Place) -> dict[str, Any]:
    """A moment as Debezium's offset.

    Raises:
        OperationError: POLYNYA-GTW-048, the binlog is empty: without the number of a transaction
            to begin after, a kill within the first one would lose the rest of it.
    """
    offset: dict[str, Any] = {"file": place.file, "pos": place.position}
    if place.connector == MARIADB:
        gtids = gtids_at(session, place.file, place.position)
        if not gtids:
            raise OperationError(
                "POLYNYA-GTW-048", "the server's binlog has no transaction yet",
                where=f"{access.task}: {access.host}:{access.port}",
                state="nothing was captured", fix="change a row, then begin again",
            )  # fmt: skip
        return offset | {"gtids": gtids}
    (gtids,) = session.rows("SELECT IF(@@gtid_mode = 'ON', @@gtid_executed, '')")[0]
    return offset | ({"gtids": "".join(gtids.split())} if gtids else {})


def gtids_at(session: Session, file: str, position: int) -> str | None:
    """The last transactions before a place in MariaDB's binlog, one of each domain."""
    (gtids,) = session.rows(f"SELECT BINLOG_GTID_POS({literal(file)}, {position})")[0]
    return None if gtids is None else str(gtids)


def log_files(session: Session) -> list[tuple[str, int]]:
    """The files of the binlog that there are, oldest first, with their sizes in bytes."""
    rows = session.rows("SHOW BINARY LOGS", "the list of binlogs")
    return [(str(row[0]), int(row[1] or 0)) for row in rows]


def newest_place(session: Session) -> tuple[str, int]:
    """The end of the binlog."""
    file, size = log_files(session)[-1]
    return file, size
