"""The catalog of a target in a PostgreSQL database, read without Spark."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pg8000.native

from polynya.lake.warehouse.catalog_file import CatalogEntry
from polynya.lake.warehouse.server_errors import refused, unreachable
from polynya.model.config.target import ResolvedTarget
from polynya.model.contract.postgresql import PostgresAddress
from polynya.model.errors import DependencyError

#: Seconds until a server that does not answer is given up.
_PATIENCE: Final = 10
#: What PostgreSQL says to somebody who may not come in: class 28, and 42501 inside.
_REFUSED: Final = ("28", "42501")


def server_entries(target: ResolvedTarget, catalog: str) -> list[CatalogEntry]:
    """Everything that the catalog of a target holds under a name; nothing before the first run.

    Raises DependencyError when the server does not answer, or does not let us in.
    """
    with connected(target) as database:
        there = database.run("SELECT to_regclass('iceberg_tables') IS NOT NULL")
        if not there[0][0]:
            return []
        rows = database.run(
            "SELECT table_namespace, table_name, metadata_location, iceberg_type = 'VIEW' "
            "FROM iceberg_tables WHERE catalog_name = :catalog AND metadata_location IS NOT NULL "
            "ORDER BY 1, 2",
            catalog=catalog,
        )
    return [
        CatalogEntry(namespace, name, metadata, is_view=bool(view))
        for namespace, name, metadata, view in rows
    ]


@contextmanager
def connected(target: ResolvedTarget) -> Iterator[Any]:
    """A connection to the catalog of a target, closed at the end."""
    address = target.database
    assert address is not None, "the catalog is on a server"
    try:
        connection = pg8000.native.Connection(
            user=target.catalog_user or "",
            password=_password(target),
            host=address.host,
            port=address.port,
            database=address.database,
            ssl_context=_tls(address),
            timeout=_PATIENCE,
            application_name="polynya",
        )
    except (pg8000.native.Error, OSError) as error:
        raise _failed(address, error) from None
    try:
        yield connection
    except (pg8000.native.Error, OSError) as error:
        raise _failed(address, error) from None
    finally:
        connection.close()


def _password(target: ResolvedTarget) -> str | None:
    return None if target.catalog_password is None else target.catalog_password.get_secret_value()


def _tls(address: PostgresAddress) -> ssl.SSLContext | bool | None:
    """As the JDBC driver does: encrypted where asked for, and the server proven where asked for."""
    if address.tls == "disable":
        return False
    if address.tls == "prefer":
        return None
    context = ssl.create_default_context()
    context.check_hostname = address.tls == "verify-full"
    if address.tls == "require":
        context.verify_mode = ssl.CERT_NONE
    return context


def _failed(address: PostgresAddress, error: Exception) -> DependencyError:
    """The error for a server that does not do as it is asked."""
    said = error.args[0] if error.args else None
    code, why = "", str(error)
    if isinstance(said, dict):
        code, why = str(said.get("C", "")), str(said.get("M", ""))
    if code.startswith(_REFUSED):
        return refused(address.text, why)
    return unreachable(address.text, why)
