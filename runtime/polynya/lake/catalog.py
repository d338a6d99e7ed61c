"""The catalog of a target, in the names of Iceberg's Java side and of PyIceberg."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

from polynya.lake.naming import CATALOG
from polynya.model.errors import OperationError
from polynya.model.target import ResolvedTarget

_SQLITE = "jdbc:sqlite:"


def spark_properties(target: ResolvedTarget) -> dict[str, str]:
    """Catalog properties for Spark. V1 of the schema is what lets a JDBC catalog hold views."""
    uri = target.catalog_uri
    if uri.startswith(_SQLITE) and "?" not in uri:
        uri += "?busy_timeout=30000"
    return {
        "type": target.catalog_type,
        "uri": uri,
        "jdbc.schema-version": "V1",
        "warehouse": str(target.warehouse),
        **target.catalog_properties,
    }


def python_catalog(target: ResolvedTarget) -> Catalog:
    """The same catalog for PyIceberg, for commands that need no JVM.

    Raises OperationError when nothing was run yet, so that the catalog does not exist.
    """
    file = _sqlite_file(target)
    if not has_tables(target):
        raise OperationError(
            "POLYNYA-LAKE-008",
            f"the target {target.name} has no tables yet",
            where=str(file),
            state="nothing was run",
            fix="`polynya run --once`",
        )
    uri = f"sqlite:///{file}" if file is not None else target.catalog_uri
    return SqlCatalog(
        CATALOG, uri=uri, warehouse=str(target.warehouse), init_catalog_tables="false"
    )


def has_tables(target: ResolvedTarget) -> bool:
    """Whether the catalog of a target exists by now."""
    file = _sqlite_file(target)
    return file is None or file.is_file()


def _sqlite_file(target: ResolvedTarget) -> Path | None:
    """The file of a catalog on SQLite, None for another database."""
    uri = target.catalog_uri
    if not uri.startswith(_SQLITE):
        return None
    return Path(uri.removeprefix(_SQLITE).split("?")[0])
