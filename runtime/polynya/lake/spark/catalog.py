"""The catalog of a target, in the names of Iceberg's Java side and of PyIceberg."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polynya.lake.spark.naming import CATALOG
from polynya.lake.warehouse.catalog_file import SQLITE, catalog_file, entries
from polynya.lake.warehouse.check import refuse_unusable
from polynya.model.config.aws import AwsAccess
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import OperationError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

#: Every commit and every plan reads manifests, most of them again: in S3 a request for each. One
#: table has some hundred, of a few kilobytes.
_KEPT_MANIFESTS = {
    "io.manifest.cache-enabled": "true",
    "io.manifest.cache.max-total-bytes": str(32 * 1024 * 1024),
    "io.manifest.cache.expiration-interval-ms": str(10 * 60 * 1000),
}


def spark_properties(target: ResolvedTarget) -> dict[str, str]:
    """Catalog properties for Spark."""
    if target.on_glue:
        return {**_glue_for_spark(target), **target.catalog_properties}
    uri = target.catalog_uri
    if uri.startswith(SQLITE) and "?" not in uri:
        uri += "?busy_timeout=30000"
    return {
        "type": target.catalog_type,
        "uri": uri,
        # V1 of the schema is what lets a JDBC catalog hold views.
        "jdbc.schema-version": "V1",
        "warehouse": str(target.warehouse),
        **target.catalog_properties,
    }


def _glue_for_spark(target: ResolvedTarget) -> dict[str, str]:
    properties = {
        "type": "glue",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "warehouse": str(target.warehouse),
        "client.region": _region(target.aws),
        **_KEPT_MANIFESTS,
    }
    if target.catalog_id is not None:
        properties["glue.id"] = target.catalog_id
    if target.aws.kms_key is not None:
        properties |= {"s3.sse.type": "kms", "s3.sse.key": target.aws.kms_key}
    if target.aws.endpoint is not None:
        properties |= {
            "s3.endpoint": target.aws.endpoint,
            "s3.path-style-access": "true",
            "glue.endpoint": target.aws.endpoint,
        }
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
    file = catalog_file(target)
    if not has_tables(target):
        raise OperationError(
            "POLYNYA-LAKE-008",
            f"the target {target.name} has no tables yet",
            where=str(file),
            state="nothing was run",
            fix="`polynya run --once`",
        )
    # Start-up time: SQLAlchemy, which a process with a JVM has no use for.
    from pyiceberg.catalog.sql import SqlCatalog

    uri = f"sqlite:///{file}" if file is not None else target.catalog_uri
    return SqlCatalog(
        CATALOG, uri=uri, warehouse=str(target.warehouse), init_catalog_tables="false"
    )


def _glue_for_python(target: ResolvedTarget) -> dict[str, str]:
    properties = {
        "type": "glue",
        "warehouse": str(target.warehouse),
        "client.region": _region(target.aws),
    }
    if target.catalog_id is not None:
        properties["glue.id"] = target.catalog_id
    if target.aws.endpoint is not None:
        properties |= {"s3.endpoint": target.aws.endpoint, "glue.endpoint": target.aws.endpoint}
    return properties


def _region(access: AwsAccess) -> str:
    """One region for Java, Arrow and boto3, which would look for it in different places."""
    # Start-up time: the AWS SDK.
    from polynya.store.aws.clients import region_of

    return region_of(access)


def has_tables(target: ResolvedTarget) -> bool:
    """Whether the catalog of a target holds anything; raises what `refuse_unusable` raises."""
    refuse_unusable(target, CATALOG)
    file = catalog_file(target)
    return file is None or bool(entries(file, CATALOG))
