"""What a target on AWS needs: who we are, buckets, catalog. Writes one small object, removes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final
from uuid import uuid4

from polynya.cli.checks import Check, guarded
from polynya.model.aws import AwsAccess
from polynya.model.loader import LoadedProject
from polynya.model.location import S3Location
from polynya.store.aws_probe import database_state, identity
from polynya.store.retry import Retry
from polynya.store.s3 import S3ObjectStore

#: Somebody waits for the answer.
_PATIENCE: Final = Retry(deadline=2.0)
#: Below it nobody lands anything: the reader of landed files leaves such names alone.
_PROBE: Final = "_polynya-doctor"


def aws_checks(project: LoadedProject) -> Iterator[Check]:
    """One check for each thing of the target that is on AWS."""
    target = project.target
    yield guarded("aws identity", partial(_identity, target.aws))
    for name, place in (("landing", target.landing), ("config", target.config)):
        if isinstance(place, S3Location):
            yield guarded(name, partial(_readable, name, place, target.aws))
    warehouse = target.warehouse
    if isinstance(warehouse, S3Location):
        yield guarded("warehouse", partial(_writable, warehouse, target.aws))
    if target.on_glue:
        schemas = {task.internal_schema or f"{task.schema_}_internal" for task in project.tasks}
        for schema in sorted({name.lower() for name in schemas}):
            look = partial(_catalog, schema, target.aws, target.catalog_id)
            yield guarded("catalog", look)


def _identity(access: AwsAccess) -> Check:
    return Check("aws identity", "ok", identity(access, _PATIENCE))


def _readable(name: str, place: S3Location, access: AwsAccess) -> Check:
    store = S3ObjectStore(place, access, retry=_PATIENCE)
    empty = next(store.list(), None) is None
    # Who may read and list is told that an object is not there; who may not read, that it is
    # forbidden.
    with suppress(FileNotFoundError):
        store.get(_PROBE)
    return Check(name, "ok", f"{place}: can be listed and read{', empty so far' if empty else ''}")


def _writable(place: S3Location, access: AwsAccess) -> Check:
    """Really write: policies, keys and bucket settings cannot be judged from here."""
    store = S3ObjectStore(place, access, retry=_PATIENCE)
    path = f"{_PROBE}/{uuid4().hex}"
    store.put(path, b"polynya")
    store.get(path)
    store.delete(path)
    return Check("warehouse", "ok", f"{place}: written, read, deleted")


def _catalog(schema: str, access: AwsAccess, catalog_id: str | None) -> Check:
    tables = database_state(access, schema, catalog_id, _PATIENCE)
    if tables is None:
        return Check(
            "catalog",
            "warn",
            f"Glue has no database {schema} yet; creating it was not tried",
            "the first run needs glue:CreateDatabase, glue:CreateTable and glue:UpdateTable",
        )
    return Check("catalog", "ok", f"Glue database {schema}: {tables} tables can be read")
