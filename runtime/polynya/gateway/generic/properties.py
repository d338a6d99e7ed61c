"""Debezium's settings for databases that it loads and follows by itself. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from polynya.gateway.mysql.properties import java_pattern
from polynya.gateway.source import Access
from polynya.model.errors import OperationError

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
        own = [one for one in access.properties if one.startswith(("driver.", "database.url"))]
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


def _unsecured(access: Access, names: str) -> OperationError:
    return OperationError(
        "POLYNYA-GTW-055",
        f"how the way to a database of type {access.type} is secured has to be said in "
        f"`engine.properties`: {names}",
        where=access.task,
        state="nothing was sent and nothing was captured",
        fix="see the connector's documentation for its settings of TLS",
    )


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
