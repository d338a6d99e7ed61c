"""The catalog of a target, in the names of Iceberg's Java side and of PyIceberg."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from polynya.lake.warehouse.catalogs import SQLITE, CatalogEntry, catalog_file
from polynya.lake.warehouse.check import entries_of, refuse_unusable
from polynya.lake.warehouse.rest_access import (
    region,
    rest_properties,
    rest_secrets,
    s3_for_python,
)
from polynya.model.config.aws import AwsAccess
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.warehouse import NO_TABLES_YET
from polynya.model.names import S3Location, quote_path

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.catalog.sql import SqlCatalog

    from polynya.lake.spark.api import SparkSession
    from polynya.lake.warehouse.tables import Tables

#: Name of the catalog in Spark, and the `catalog_name` of its rows in a JDBC catalog: all readers
#: must use the same.
CATALOG: Final = "polynya"
#: Spark's catalog of the views of one session, where the catalog itself can hold no Iceberg views.
SESSION_VIEWS: Final = "live"

#: Every commit and every plan reads manifests, most of them again: in S3 a request for each. One
#: table has some hundred, of a few kilobytes.
_KEPT_MANIFESTS = {
    "io.manifest.cache-enabled": "true",
    "io.manifest.cache.max-total-bytes": str(32 * 1024 * 1024),
    "io.manifest.cache.expiration-interval-ms": str(10 * 60 * 1000),
}


#: How long Java waits for a REST catalog, in milliseconds: to let it in, and for an answer. A token
#: is asked for as at the start: not all servers exchange one for the next.
_REST_CLIENT = {
    "rest.client.connection-timeout-ms": "10000",
    "rest.client.socket-timeout-ms": "60000",
    "token-exchange-enabled": "false",
}
#: How long Java waits for a database, in seconds: to let it in, and for an answer.
_JDBC_TIMEOUTS = {
    "jdbc.loginTimeout": "10",
    "jdbc.socketTimeout": "60",
    "jdbc.tcpKeepAlive": "true",
}


def internal_name(catalog: Tables[object], dataset: ResolvedDataset) -> tuple[str, str]:
    """The internal table of a dataset as PyIceberg names it."""
    return stored_name(dataset, lower=catalog.properties.get("type") == "glue")


def stored_name(dataset: ResolvedDataset, *, lower: bool) -> tuple[str, str]:
    """The internal table of a dataset as the catalog stores it.

    Glue has no upper case. No two datasets differ in nothing else (`relations`).
    """
    name = (dataset.relations.internal_schema, dataset.relations.internal_table)
    return (name[0].lower(), name[1].lower()) if lower else name


def view_catalog(spark: SparkSession) -> str:
    """The catalog in which a session has the views: the one that queries look in first."""
    return str(spark.conf.get("spark.sql.defaultCatalog"))


def views_stay(spark: SparkSession) -> bool:
    """Whether the views of a session are in the catalog of the target."""
    return view_catalog(spark) == CATALOG


def internal_path(spark: SparkSession, dataset: ResolvedDataset) -> str:
    """The internal table of a dataset as Spark SQL names it."""
    kind = spark.conf.get(f"spark.sql.catalog.{CATALOG}.type", None)
    return quote_path(CATALOG, *stored_name(dataset, lower=kind == "glue"))


def spark_properties(target: ResolvedTarget) -> dict[str, str]:
    """Catalog properties for Spark, but for those of `secret_properties`."""
    properties = {"warehouse": str(target.warehouse)}
    if target.rest is not None:
        # Its own name of the warehouse, or none.
        properties = {"type": "rest", **_REST_CLIENT, **rest_properties(target.rest)}
    if isinstance(target.warehouse, S3Location):
        properties |= _s3_for_spark(target.aws)
    if target.rest is not None:
        return {**properties, **target.catalog_properties}
    if target.on_glue:
        return {**properties, **_glue_for_spark(target), **target.catalog_properties}
    uri = target.catalog_uri
    if uri.startswith(SQLITE) and "?" not in uri:
        uri += "?busy_timeout=30000"
    if target.database is not None:
        properties |= {"jdbc.ApplicationName": "polynya", **_JDBC_TIMEOUTS}
        if target.database.tls.startswith("verify"):
            # The driver's own factory wants a file of authorities in the home of the user.
            properties["jdbc.sslfactory"] = "org.postgresql.ssl.DefaultJavaSSLFactory"
    return {
        **properties,
        "type": target.catalog_type,
        "uri": uri,
        # V1 of the schema is what lets a JDBC catalog hold views.
        "jdbc.schema-version": "V1",
        **target.catalog_properties,
    }


def secret_properties(target: ResolvedTarget) -> dict[str, str]:
    """Catalog properties for Spark that no command line and no listing of a process may show."""
    properties = {}
    if target.catalog_user is not None:
        properties["jdbc.user"] = target.catalog_user
    if target.catalog_password is not None:
        properties["jdbc.password"] = target.catalog_password.get_secret_value()
    if target.rest is not None:
        properties |= rest_secrets(target.rest)
    return properties


def _s3_for_spark(access: AwsAccess) -> dict[str, str]:
    properties = {
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": region(access),
        **_KEPT_MANIFESTS,
    }
    if access.kms_key is not None:
        properties |= {"s3.sse.type": "kms", "s3.sse.key": access.kms_key}
    if access.endpoint is not None:
        properties |= {"s3.endpoint": access.endpoint, "s3.path-style-access": "true"}
    return properties


def _glue_for_spark(target: ResolvedTarget) -> dict[str, str]:
    properties = {"type": "glue"}
    if target.catalog_id is not None:
        properties["glue.id"] = target.catalog_id
    if target.aws.endpoint is not None:
        properties["glue.endpoint"] = target.aws.endpoint
    return properties


def python_catalog(target: ResolvedTarget) -> Catalog:
    """The same catalog for PyIceberg, for commands that need no JVM.

    Raises OperationError when nothing was run yet, so that the catalog does not exist, and what
    `refuse_unusable` raises.
    """
    if target.on_glue:
        # Start-up time: the AWS SDK.
        from pyiceberg.catalog.glue import GlueCatalog

        return GlueCatalog(CATALOG, **_glue_for_python(target))
    if target.rest is not None:
        # Start-up time: the client, which no other catalog needs.
        from polynya.lake.warehouse.rest_catalog import open_rest_catalog

        return open_rest_catalog(target, CATALOG)
    file = catalog_file(target)
    if not has_tables(target):
        raise NO_TABLES_YET(
            where=str(file) if file is not None else f"target {target.name}", target=target.name
        )
    # Start-up time: SQLAlchemy, which a process with a JVM has no use for.
    from pyiceberg.catalog.sql import SqlCatalog

    properties = {"warehouse": str(target.warehouse), **s3_for_python(target)}
    if file is not None:
        return SqlCatalog(
            CATALOG, uri=f"sqlite:///{file}", init_catalog_tables="false", **properties
        )
    catalog = SqlCatalog(CATALOG, uri="sqlite:///:memory:", **properties)
    _fill(catalog, entries_of(target, CATALOG))
    return catalog


def _fill(catalog: SqlCatalog, entries: Iterable[CatalogEntry]) -> None:
    """Let a catalog in memory name the tables that one on a server names now.

    So PyIceberg needs neither a driver nor the password.
    """
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import insert

    rows = [
        {
            "catalog_name": CATALOG,
            "table_namespace": entry.namespace,
            "table_name": entry.name,
            "metadata_location": entry.metadata,
            "iceberg_type": "VIEW" if entry.is_view else "TABLE",
        }
        for entry in entries
    ]
    with catalog.engine.begin() as database:
        database.execute(insert(IcebergTables), rows)


def _glue_for_python(target: ResolvedTarget) -> dict[str, str]:
    properties = {
        "type": "glue",
        "warehouse": str(target.warehouse),
        **s3_for_python(target),
    }
    if target.catalog_id is not None:
        properties["glue.id"] = target.catalog_id
    if target.aws.endpoint is not None:
        properties["glue.endpoint"] = target.aws.endpoint
    return properties


def holds_views(target: ResolvedTarget) -> bool:
    """Whether the catalog of a target can hold Iceberg views.

    Raises DependencyError when a REST catalog does not say.
    """
    if target.rest is not None:
        # Start-up time: the client, which no other catalog needs.
        from polynya.lake.warehouse.rest_catalog import open_rest_catalog

        return open_rest_catalog(target, CATALOG).holds_views
    return not target.on_glue


def has_tables(target: ResolvedTarget) -> bool:
    """Whether the catalog of a target holds anything; raises what `refuse_unusable` raises."""
    if target.on_glue or target.rest is not None:
        return True
    refuse_unusable(target, CATALOG)
    return bool(entries_of(target, CATALOG))
