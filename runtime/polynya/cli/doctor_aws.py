"""`polynya doctor` for a target on AWS: identity, buckets, catalog, stream.

The checks delete everything that they write for a try; only a record in a stream stays until it
expires. They pass with the rights of a node, and say what they skip for want of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final
from uuid import uuid4

from polynya.cli.checks import Check, guarded
from polynya.cli.doctor_tables import tables_check
from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.cluster import WORKLOAD_STREAM_MISSING
from polynya.model.error_catalogue.machine import AWS_NO_ANSWER, AWS_REFUSED
from polynya.model.errors import DependencyError, PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import S3Location
from polynya.store.aws.account import (
    database_state,
    identity,
    try_catalog_writes,
    try_stream_read,
    try_stream_write,
)
from polynya.store.aws.lifecycle import harmful_rules, lifecycle_rules
from polynya.store.aws.s3 import S3ObjectStore
from polynya.store.clock import Retry

#: Somebody waits for the answer.
_PATIENCE: Final = Retry(deadline=2.0)

#: Nothing lands below it: the reader of landed files ignores such names.
_PROBE: Final = "_polynya-doctor"


def aws_checks(project: LoadedProject, stream: str | None) -> Iterator[Check]:
    """One check for each thing of the target that is on AWS, and for the workload stream."""
    target = project.target
    schemas = {internal.lower() for _, internal in schemas_of(project)}
    yield guarded("aws identity", partial(_identity, target.aws))
    if isinstance(target.landing, S3Location):
        yield guarded("landing", partial(_readable, "landing", target.landing, target.aws))
    if isinstance(target.config, S3Location):
        yield guarded("config", partial(_configuration, target.config, target.aws))
    warehouse = target.warehouse
    vended = target.rest is not None and target.rest.vended_credentials
    if isinstance(warehouse, S3Location) and not vended:
        folder = f"{min(schemas)}.db/{_PROBE}" if schemas else _PROBE
        written = guarded("warehouse", partial(_writable, warehouse, folder, target.aws))
        yield written
        if written.status != "fail":
            yield guarded("lifecycle rules", partial(_lifecycle, warehouse, schemas, target.aws))
    if target.on_glue:
        readable = True
        for schema in sorted(schemas):
            look = partial(_catalog, schema, target.aws, target.catalog_id)
            catalog = guarded("catalog", look)
            yield catalog
            readable = readable and catalog.status != "fail"
        if readable:
            yield guarded("views", partial(_views, project))
            yield guarded("other engines", partial(_tables, project))
    if stream is not None:
        yield guarded("workload stream", partial(stream_check, stream, target.aws))


def schemas_of(project: LoadedProject) -> list[tuple[str, str]]:
    """For each task that writes tables: the schema of its views, and that of its tables."""
    return [
        (task.schema_, task.internal_schema or f"{task.schema_}_internal") for task in project.tasks
    ]


def _identity(access: AwsAccess) -> Check:
    """Only told: what the credentials may do, the other checks try."""
    try:
        return Check("aws identity", "ok", identity(access, _PATIENCE))
    except DependencyError as error:
        if error.code != AWS_NO_ANSWER.code:
            raise
        detail = "not checked: AWS STS did not answer; nothing that runs here asks it"
        fix = "nodes without internet have no endpoint of STS, and need none"
        return Check("aws identity", "warn", detail, fix)


def _readable(name: str, place: S3Location, access: AwsAccess) -> Check:
    store = S3ObjectStore(place, access, retry=_PATIENCE)
    empty = next(store.list(), None) is None
    # With the rights to read and list, a missing object is reported as missing; without the right
    # to read, as forbidden.
    with suppress(FileNotFoundError):
        store.get(_PROBE)
    return Check(name, "ok", f"{place}: can be listed and read{', empty so far' if empty else ''}")


def _configuration(place: S3Location, access: AwsAccess) -> Check:
    """Nodes only read; a push needs more rights, and a bucket with conditional writes."""
    readable = _readable("config", place, access)
    store = S3ObjectStore(place, access, retry=_PATIENCE)
    path = f"{_PROBE}/{uuid4().hex}"
    try:
        created = store.put_if_absent(path, b"1")
    except DependencyError as error:
        if error.code != AWS_REFUSED.code:
            raise
        detail = f"{readable.detail}; it cannot be written: {error.why}"
        return Check("config", "warn", detail, f"to push, {error.fix}; nodes do not need it")
    version = store.read(path, 1).version
    compared = [
        created,
        not store.put_if_absent(path, b"2"),
        store.put_if_unchanged(path, b"3", version),
        not store.put_if_unchanged(path, b"4", version),
    ]
    store.delete(path)
    if not all(compared):
        return Check(
            "config",
            "fail",
            f"{place}: writes are taken without the comparison that they ask for",
            "use a store with conditional writes, such as Amazon S3: two pushes would mix here",
        )
    return Check("config", "ok", f"{readable.detail}; written, compared, deleted")


def _tables(project: LoadedProject) -> Check:
    """Whether other engines can read each table."""
    # Start-up time: PyIceberg.
    from polynya.lake.errors import aws_error

    try:
        return tables_check(project)
    except PolynyaError:
        raise
    except Exception as error:
        # PyIceberg has errors of its own for what AWS says.
        if (outside := aws_error(error)) is not None:
            raise outside from error
        raise


def _views(project: LoadedProject) -> Check:
    """Whether other engines see each dataset as its table is."""
    # Start-up time: PyIceberg and sqlglot.
    from polynya.engine.inventory import inventory
    from polynya.lake.errors import aws_error
    from polynya.lake.read.inspect import shape
    from polynya.lake.spark.catalog import python_catalog
    from polynya.query.glue import GluePublisher

    publisher = GluePublisher(project.target)
    seen, stale = 0, []
    try:
        for entry in inventory(project, python_catalog(project.target)):
            if entry.table is None or entry.is_ledger:
                continue
            table_shape = shape(entry.table, entry.dataset)
            if table_shape.data:
                seen += 1
                stale += publisher.stale(entry.dataset, table_shape)
    except PolynyaError:
        raise
    except Exception as error:
        # PyIceberg has errors of its own for what AWS says.
        if (outside := aws_error(error)) is not None:
            raise outside from error
        raise
    if stale:
        detail = f"not as their tables are, or missing: {', '.join(stale)}"
        return Check("views", "warn", detail, "the next `polynya run` publishes them, or says why")
    return Check("views", "ok", f"those of {seen} datasets are published for Athena and Trino")


def stream_check(name: str, access: AwsAccess) -> Check:
    """Do what nodes do with it: put a record, and read, as they do where they share work."""
    try:
        try_stream_write(access, name, _PATIENCE)
    except DependencyError as error:
        if error.code != WORKLOAD_STREAM_MISSING.code:
            raise
        fix = "`WorkloadStreamName` among the outputs of the stage's storage stack has its name"
        return Check("workload stream", "fail", f"there is no stream {name} in this region", fix)
    try:
        shards = try_stream_read(access, name, _PATIENCE)
    except DependencyError as error:
        if error.code != AWS_REFUSED.code:
            raise
        detail = f"{name}: one record was put; it cannot be read: {error.why}"
        fix = f"where nodes share work, {error.fix}; a node that works alone needs no more"
        return Check("workload stream", "warn", detail, fix)
    return Check("workload stream", "ok", f"{name}: one record was put; read, shards: {shards}")


def _writable(place: S3Location, folder: str, access: AwsAccess) -> Check:
    """Really write: policies, keys and bucket settings cannot be judged from here.

    In the folder of a database, because nodes may write nowhere else.
    """
    store = S3ObjectStore(place, access, retry=_PATIENCE)
    path = f"{folder}/{uuid4().hex}"
    store.put(path, b"polynya")
    store.get(path)
    store.delete(path)
    return Check("warehouse", "ok", f"{place}: written, read, deleted")


def _lifecycle(warehouse: S3Location, schemas: set[str], access: AwsAccess) -> Check:
    """Whether the bucket deletes or archives files of tables by itself."""
    name = "lifecycle rules"
    try:
        rules = lifecycle_rules(access, warehouse.bucket, _PATIENCE)
    except DependencyError as error:
        if error.code != AWS_REFUSED.code:
            raise
        detail = f"not checked: {error.why}"
        return Check(name, "warn", detail, f"{error.fix}; nodes do not need it")
    # Glue's catalog puts `.db` behind the name of a schema, other catalogs do not.
    folders = [
        warehouse.key(f"{schema}{end}/") for schema in sorted(schemas) for end in ("", ".db")
    ]
    found = list(harmful_rules(rules, folders or [warehouse.key("")]))
    if found:
        return Check(
            name,
            "fail",
            f"{warehouse.bucket}: {'; '.join(map(str, found))}: tables there lose files that they "
            "need",
            "limit each rule to a prefix without tables; `polynya maintain` removes old files",
        )
    return Check(name, "ok", f"{warehouse.bucket}: none takes away files of tables")


def _catalog(schema: str, access: AwsAccess, catalog_id: str | None) -> Check:
    tables = database_state(access, schema, catalog_id, _PATIENCE)
    if tables is None:
        return Check(
            "catalog",
            "warn",
            f"Glue has no database {schema} yet; creating it was not tried",
            "the first run needs glue:CreateDatabase, glue:CreateTable and glue:UpdateTable",
        )
    seen = f"Glue database {schema}: {tables} tables can be read"
    if not try_catalog_writes(access, schema, catalog_id, _PATIENCE):
        # Not a fault: it is what nodes have.
        skipped = "creating was not tried, because without glue:DeleteTable the try would stay"
        return Check("catalog", "ok", f"{seen}, and changed; {skipped}")
    return Check("catalog", "ok", f"{seen}; one was written, deleted")
