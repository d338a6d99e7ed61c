"""Questions to AWS: who we are, what the catalog shows us; and writes that are taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar
from uuid import uuid4

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.clients import AWS_ERRORS, client, code_of, explained, is_transient
from polynya.store.aws.kinesis import KinesisStream
from polynya.store.retry import Retry

T = TypeVar("T")

PROBE_TABLE: Final = "polynya_doctor"


def identity(access: AwsAccess, retry: Retry) -> str:
    """The ARN of the credentials. Raises DependencyError."""
    sts = client("sts", access)
    return _asked(
        retry,
        lambda: str(sts.get_caller_identity()["Arn"]),
        ("tell who we are", "AWS STS", "sts:GetCallerIdentity"),
    )


def database_state(
    access: AwsAccess, name: str, catalog_id: str | None, retry: Retry
) -> int | None:
    """How many tables a Glue database shows, None when there is no such database.

    Raises DependencyError.
    """
    glue = client("glue", access)
    of = {"CatalogId": catalog_id} if catalog_id else {}

    def tables() -> int | None:
        try:
            pages = glue.get_paginator("get_tables").paginate(DatabaseName=name, **of)
            return sum(len(page["TableList"]) for page in pages)
        except AWS_ERRORS as error:
            if code_of(error) == "EntityNotFoundException":
                return None
            raise

    grant = (
        f"glue:GetDatabase, glue:GetTable and glue:GetTables on the catalog, the database {name} "
        "and its tables"
    )
    return _asked(retry, tables, ("read the catalog", f"Glue database {name}", grant))


def try_catalog_writes(
    access: AwsAccess, database: str, catalog_id: str | None, retry: Retry
) -> None:
    """Create, change and delete a view of no use in a Glue database.

    Raises DependencyError with the grant that is missing.
    """
    glue = client("glue", access)
    of = {"DatabaseName": database, **({"CatalogId": catalog_id} if catalog_id else {})}
    name = f"{PROBE_TABLE}_{uuid4().hex}"
    definition = {"Name": name, "TableType": "VIRTUAL_VIEW", "ViewOriginalText": "SELECT 1"}
    where = f"Glue database {database}"
    steps = (
        (
            "create a view",
            "glue:CreateTable",
            lambda: glue.create_table(TableInput=definition, **of),
        ),
        (
            "change a view",
            "glue:UpdateTable",
            lambda: glue.update_table(TableInput=definition, **of),
        ),
        ("delete a view", "glue:DeleteTable", lambda: glue.delete_table(Name=name, **of)),
    )
    for action, grant, step in steps:
        on = f"{grant} on the catalog, the database {database} and its tables"
        _asked(retry, step, (action, where, on))


def try_stream_write(access: AwsAccess, name: str, retry: Retry) -> None:
    """Put one record that says what it is; whoever reads the stream passes over it.

    Raises DependencyError: POLYNYA-AGT-042 when there is no such stream.
    """
    _stream(access, name, retry).put(PROBE_TABLE, b'{"type": "doctor"}')


def try_stream_read(access: AwsAccess, name: str, retry: Retry) -> int:
    """Read what is newest in one shard, as nodes read it; returns the number of open shards.

    Raises DependencyError with the grant that is missing.
    """
    stream = _stream(access, name, retry)
    shards = stream.shards()
    for shard in shards[:1]:
        stream.read(stream.newest(shard))
    return len(shards)


def _stream(access: AwsAccess, name: str, retry: Retry) -> KinesisStream:
    return KinesisStream(name, access, retry=retry, kinesis=client("kinesis", access))


def _asked(retry: Retry, question: Callable[[], T], meaning: tuple[str, str, str]) -> T:
    action, resource, grant = meaning
    try:
        return retry.run(question, is_transient)
    except AWS_ERRORS as error:
        raise explained(error, action=action, resource=resource, grant=grant) from error
