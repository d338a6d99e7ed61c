"""The catalogs of targets without Spark: an SQLite file, or a PostgreSQL database."""

from __future__ import annotations

import sqlite3
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.machine import ACCESS_DENIED
from polynya.model.error_catalogue.warehouse import (
    CATALOG_DAMAGED,
    CATALOG_DATABASE_UNREACHABLE,
    CATALOG_LOGIN_REFUSED,
    WAREHOUSE_IN_USE,
)
from polynya.model.errors import DependencyError
from polynya.model.names import PostgresAddress

SQLITE: Final = "jdbc:sqlite:"
#: Seconds to wait for a commit of another process.
_FILE_TIMEOUT_SECONDS: Final = 30.0
_TABLES: Final = "iceberg_tables"
_NAMESPACES: Final = "iceberg_namespace_properties"
#: As Iceberg makes them: version 1 of its schema, which can hold views.
CATALOG_SCHEMA: Final = (
    (
        "CREATE TABLE IF NOT EXISTS iceberg_tables("
        "catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, "
        "table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), "
        "previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), "
        "PRIMARY KEY (catalog_name, table_namespace, table_name))"
    ),
    (
        "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties("
        "catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, "
        "property_key VARCHAR(255), property_value VARCHAR(1000), "
        "PRIMARY KEY (catalog_name, namespace, property_key))"
    ),
)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A table or a view of the catalog; `metadata` is where its metadata file is.

    "" where only loading it says so: in a list of a REST catalog.
    """

    namespace: str
    name: str
    metadata: str
    is_view: bool = False

    @property
    def full_name(self) -> str:
        """`namespace.name`."""
        return f"{self.namespace}.{self.name}"


def catalog_file(target: ResolvedTarget) -> Path | None:
    """The SQLite file of a target's catalog, None for a catalog of another kind."""
    uri = target.catalog_uri
    if not uri.startswith(SQLITE):
        return None
    return Path(uri.removeprefix(SQLITE).split("?")[0])


def entries(file: Path, catalog: str) -> list[CatalogEntry]:
    """Everything that a catalog file holds under the name of a catalog; nothing if it is empty.

    Raises DependencyError when the file is not a catalog, is damaged, or cannot be read.
    """
    if not file.is_file() or not file.stat().st_size:
        return []
    with _opened(file) as database:
        _refuse_damaged(database, file)
        columns = {row[1] for row in database.execute(f"PRAGMA table_info({_TABLES})")}
        if not columns:
            return []
        # Catalogs of early versions of Iceberg have no such column, and no views.
        kind = "iceberg_type" if "iceberg_type" in columns else "NULL"
        rows = database.execute(
            f"SELECT table_namespace, table_name, metadata_location, {kind} = 'VIEW' "
            "FROM iceberg_tables WHERE catalog_name = ? AND metadata_location IS NOT NULL "
            "ORDER BY 1, 2",
            (catalog,),
        )
        return [
            CatalogEntry(namespace, name, metadata, is_view=bool(view))
            for namespace, name, metadata, view in rows
        ]


def namespaces(file: Path, catalog: str) -> dict[str, dict[str, str]]:
    """Properties of each namespace that a catalog file holds by itself, also of empty ones.

    A namespace that only has tables may be missing. Raises what `entries` raises.
    """
    if not file.is_file() or not file.stat().st_size:
        return {}
    with _opened(file) as database:
        if not database.execute(f"PRAGMA table_info({_NAMESPACES})").fetchall():
            return {}
        return _properties(
            database.execute(
                "SELECT namespace, property_key, property_value "
                "FROM iceberg_namespace_properties WHERE catalog_name = ? ORDER BY 1, 2",
                (catalog,),
            )
        )


def _properties(rows: Iterable[Sequence[str | None]]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for namespace, key, value in rows:
        properties = found.setdefault(str(namespace), {})
        # Iceberg notes `exists` for a namespace without properties.
        if key is not None and key != "exists" and value is not None:
            properties[key] = value
    return found


def change_entries(
    file: Path,
    catalog: str,
    moved: Mapping[CatalogEntry, Path | str | None],
    places: tuple[str, str],
) -> None:
    """Let entries name other metadata files, all in one transaction; None takes an entry out.

    `places` are the former folder of the warehouse and the present one, for the namespaces. Raises
    ConflictError, with nothing changed, when another process committed to one of the tables.
    """
    same = "catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?"
    with _opened(file) as database, database:
        for entry, metadata in moved.items():
            key = (catalog, entry.namespace, entry.name, entry.metadata)
            if metadata is None:
                done = database.execute(f"DELETE FROM iceberg_tables WHERE {same}", key)
            else:
                done = database.execute(
                    "UPDATE iceberg_tables SET metadata_location = ?, "
                    f"previous_metadata_location = NULL WHERE {same}",
                    (str(metadata), *key),
                )
            if done.rowcount != 1:
                raise WAREHOUSE_IN_USE(where=str(file), table=entry.full_name)
        database.execute(
            "UPDATE iceberg_namespace_properties SET property_value = "
            "? || substr(property_value, ?) WHERE catalog_name = ? AND property_key = 'location' "
            "AND substr(property_value, 1, ?) = ?",
            (places[1], len(places[0]) + 1, catalog, len(places[0]), places[0]),
        )


def new_catalog(file: Path, catalog: str, added: Iterable[CatalogEntry]) -> None:
    """Write entries into a catalog file that has none, made if there is none."""
    with _opened(file, mode="rwc") as database, database:
        for statement in CATALOG_SCHEMA:
            database.execute(statement)
        for entry in added:
            database.execute(
                "INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, NULL, ?)",
                (
                    catalog,
                    entry.namespace,
                    entry.name,
                    entry.metadata,
                    "VIEW" if entry.is_view else "TABLE",
                ),
            )
            database.execute(
                "INSERT OR IGNORE INTO iceberg_namespace_properties "
                "VALUES (?, ?, 'exists', 'true')",
                (catalog, entry.namespace),
            )


@contextmanager
def _opened(file: Path, *, mode: str = "rw") -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(str(file))}?mode={mode}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=_FILE_TIMEOUT_SECONDS)) as database:
            yield database
    except sqlite3.OperationalError as error:
        raise ACCESS_DENIED(
            f"the catalog file cannot be used: {error}",
            where=str(file),
            state="nothing was started; the tables are unchanged",
            fix="check the permissions of the file and its folder, and the free space on the disk",
        ) from error
    except sqlite3.DatabaseError as error:
        raise CATALOG_DAMAGED(where=str(file), why=str(error)) from error


def _refuse_damaged(database: sqlite3.Connection, file: Path) -> None:
    (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise CATALOG_DAMAGED(where=str(file), why=" ".join(str(verdict).split()))


#: Seconds until a server that does not answer is given up.
_SERVER_TIMEOUT_SECONDS: Final = 10
#: SQLSTATE of PostgreSQL for a refused login: class 28, and 42501 for a missing permission.
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


def server_namespaces(target: ResolvedTarget, catalog: str) -> dict[str, dict[str, str]]:
    """The same as `namespaces`, from the catalog on a server. Raises what that of entries does."""
    with connected(target) as database:
        there = database.run("SELECT to_regclass('iceberg_namespace_properties') IS NOT NULL")
        if not there[0][0]:
            return {}
        return _properties(
            database.run(
                "SELECT namespace, property_key, property_value "
                "FROM iceberg_namespace_properties WHERE catalog_name = :catalog ORDER BY 1, 2",
                catalog=catalog,
            )
        )


@contextmanager
def connected(target: ResolvedTarget) -> Iterator[Any]:
    """A connection to the catalog of a target, closed at the end."""
    address = target.database
    assert address is not None, "the catalog is on a server"
    # Start-up time: the driver, which no other catalog needs.
    import pg8000.native

    try:
        connection = pg8000.native.Connection(
            user=target.catalog_user or "",
            password=_password(target),
            host=address.host,
            port=address.port,
            database=address.database,
            ssl_context=_tls(address),
            timeout=_SERVER_TIMEOUT_SECONDS,
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
    details = error.args[0] if error.args else None
    code, why = "", str(error)
    if isinstance(details, dict):
        code, why = str(details.get("C", "")), str(details.get("M", ""))
    if code.startswith(_REFUSED):
        return CATALOG_LOGIN_REFUSED(where=address.text, why=why)
    return CATALOG_DATABASE_UNREACHABLE(where=address.text, why=why)
