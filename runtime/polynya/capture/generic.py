"""SQL Server, Oracle, Db2 and MongoDB: captured by Debezium alone, snapshot and stream."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Final

from polynya.capture.mysql.database import java_pattern
from polynya.capture.source import (
    Access,
    CaptureStart,
    Chunk,
    ConnectionFinding,
    Key,
    Lag,
    Offset,
    SourceTable,
    WholeTable,
)
from polynya.model.error_catalogue.capture_databases import (
    CONNECTOR_TLS_NOT_SET,
    RELOAD_NOT_SUPPORTED,
)
from polynya.model.errors import OperationError, PolynyaError
from polynya.store.node_folders import CONNECTORS

#: A database's way to Debezium's own first load. The user's settings come last.
_INITIAL: Final = {"snapshot.mode": "initial"}


def properties(
    access: Access,
    include: Sequence[str],
    exclude: Sequence[str],
    *,
    without: Collection[str] = (),
) -> dict[str, str]:
    """All settings of the connector, but for tables `without`. They have the password.

    Raises:
        OperationError: POLYNYA-GTW-055, the way to the database would not be secured as the
            connection says.
    """
    made = _MADE[access.type](access)
    tables = java_pattern(include, exclude, without)
    listed = "collection.include.list" if access.type == "mongodb" else "table.include.list"
    return {**_INITIAL, **made, listed: tables, **access.properties}


def _reached(access: Access, connector: str) -> dict[str, str]:
    return {
        "connector.class": f"io.debezium.connector.{connector}",
        "database.hostname": access.host,
        "database.port": str(access.port),
        "database.user": access.user,
        "database.password": access.password,
    }


def _sqlserver(access: Access) -> dict[str, str]:
    if access.ca is not None:
        raise _unsecured(access, "database.ssl.truststore")
    return {
        **_reached(access, "sqlserver.SqlServerConnector"),
        "database.names": access.database,
        "driver.encrypt": "false" if access.tls == "disable" else "true",
        "driver.trustServerCertificate": "true" if access.tls == "require" else "false",
    }


def _by_driver(connector: str) -> Callable[[Access], dict[str, str]]:
    """Of drivers whose TLS is in settings that only the user knows."""

    def made(access: Access) -> dict[str, str]:
        own = [name for name in access.properties if name.startswith(("driver.", "database.url"))]
        if access.tls != "disable" and not own:
            raise _unsecured(access, "driver.… or database.url")
        return {**_reached(access, connector), "database.dbname": access.database}

    return made


def _mongodb(access: Access) -> dict[str, str]:
    if access.ca is not None:
        raise _unsecured(access, "mongodb.ssl.truststore")
    return {
        "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
        "mongodb.connection.string": f"mongodb://{access.host}:{access.port}/",
        "mongodb.user": access.user,
        "mongodb.password": access.password,
        "mongodb.ssl.enabled": "false" if access.tls == "disable" else "true",
        "mongodb.ssl.invalid.hostname.allowed": "true" if access.tls == "require" else "false",
        # Events have the whole document, not the difference.
        "capture.mode": "change_streams_update_full",
    }


def _unsecured(access: Access, settings: str) -> OperationError:
    return CONNECTOR_TLS_NOT_SET(where=access.task, type=access.type, settings=settings)


_MADE: Final[Mapping[str, Callable[[Access], dict[str, str]]]] = {
    "sqlserver": _sqlserver,
    "oracle": _by_driver("oracle.OracleConnector"),
    "db2": _by_driver("db2.Db2Connector"),
    "mongodb": _mongodb,
    # For the tests of this way, which have no server of the others.
    "mariadb": lambda access: {
        **_reached(access, "mariadb.MariaDbConnector"),
        "database.server.id": "4711",
        "database.ssl.mode": "disable",
    },
}


_NOT_TRIED: Final = (
    "databases of type {} are loaded and followed by Debezium alone; this way was not tried with "
    "such a server, and nothing of it is looked at before the capture starts"
)


class GenericDatabase:
    """A database that has no code of its own here. See `Database`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._include: Sequence[str] = ()
        self._exclude: Sequence[str] = ()

    @property
    def connector(self) -> str:
        """The type of the connection."""
        return self._access.type

    def findings(self) -> tuple[ConnectionFinding, ...]:
        """Whether the jars are there; more is not known before a capture starts."""
        found = [ConnectionFinding(ok=True, what=_NOT_TRIED.format(self._access.type))]
        paths = {jar: CONNECTORS.below(jar) for jar in self._access.jars}
        found += [
            ConnectionFinding(ok=False, what=f"{jar}: {CONNECTORS.outside()}", fix="put it there")
            for jar, path in paths.items()
            if path is None
        ]
        missing = [jar for jar, path in paths.items() if path and not path.exists()]
        found += [
            ConnectionFinding(
                ok=False, what=f"{jar} is not there", fix="put it there, or correct the path"
            )
            for jar in missing
        ]
        if not self._access.jars:
            found.append(
                ConnectionFinding(
                    ok=False, what="no jars of the connector", fix="name them: `engine.jars`"
                )
            )
        return tuple(found)

    def tables(self, include: Sequence[str], exclude: Sequence[str]) -> tuple[SourceTable, ...]:
        """What the task includes, as it is written: which tables there are only Debezium knows."""
        self._include, self._exclude = tuple(include), tuple(exclude)
        return tuple(SourceTable(name, (), ()) for name in sorted(include))

    def refused(self, include: Sequence[str]) -> Mapping[str, PolynyaError]:  # noqa: ARG002
        """Not known before the engine tries."""
        return {}

    def begin(self, tables: Sequence[SourceTable]) -> CaptureStart:  # noqa: ARG002
        """Nothing: an engine without an offset begins with a first load of its own."""
        return CaptureStart({}, NothingToLoad())

    def look(
        self, tables: Sequence[SourceTable], beyond: Offset | None  # noqa: ARG002
    ) -> CaptureStart:  # fmt: skip
        """There is no load without changes. Raises OperationError, POLYNYA-GTW-052."""
        raise RELOAD_NOT_SUPPORTED(where=self._access.task, type=self._access.type)

    def resume(self, tables: Sequence[SourceTable]) -> NothingToLoad:  # noqa: ARG002
        """What is still to be loaded is so by Debezium."""
        return NothingToLoad()

    def engine_properties(
        self, tables: Sequence[SourceTable], without: Collection[str] = ()
    ) -> Mapping[str, str]:
        """Debezium's settings, with those of the user."""
        include = self._include or [table.name for table in tables]
        return properties(self._access, include, self._exclude, without=without)

    def lag(self, offset: Offset) -> Lag:  # noqa: ARG002
        """Not known."""
        return Lag(None, None)

    def lost(self, offset: Offset) -> str | None:  # noqa: ARG002
        """Not known before the engine tries."""
        return None

    def drop(self) -> None:
        """Nothing was made."""

    def close(self) -> None:
        """Nothing was opened."""


class NothingToLoad:
    """The view of a database whose rows come with its stream. See `Snapshot`."""

    source: Mapping[str, Any] = MappingProxyType({})

    def envelope(self, table: SourceTable) -> Mapping[str, Any]:  # noqa: ARG002
        """No row has it."""
        return {}

    def read(
        self, table: SourceTable, after: Key | None, rows: int, where: str | None  # noqa: ARG002
    ) -> Chunk:  # fmt: skip
        """No rows, at once."""
        return Chunk(b"", 0, None, is_last=True)

    def whole(
        self, table: SourceTable, rows: int, where: str | None  # noqa: ARG002
    ) -> AbstractContextManager[WholeTable]:  # fmt: skip
        """No table is known to lack a key, so nobody asks. Raises ValueError."""
        raise ValueError(f"Debezium loads {table.name}")

    def close(self) -> None:
        """Nothing was opened."""
