"""Questions to AWS: who we are, what the catalog shows us; and writes that are taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar
from uuid import uuid4

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.clients import AWS_ERRORS, client, code_of, explained, is_transient
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


def stream_state(access: AwsAccess, name: str, retry: Retry) -> str | None:
    """Status and number of shards of a Kinesis stream, None when there is none of this name.

    Raises DependencyError.
    """
    kinesis = client("kinesis", access)

    def ask() -> str | None:
        try:
            answer = kinesis.describe_stream_summary(**stream_named(name))
        except AWS_ERRORS as error:
            if code_of(error) == "ResourceNotFoundException":
                return None
            raise
        found = answer["StreamDescriptionSummary"]
        return f"{found['StreamStatus'].lower()}, shards: {found['OpenShardCount']}"

    grant = f"kinesis:DescribeStreamSummary on the stream {name}"
    return _asked(retry, ask, ("describe the stream", f"stream {name}", grant))


def try_stream_write(access: AwsAccess, name: str, retry: Retry) -> None:
    """Put one record that says what it is; whoever reads the stream passes over it.

    Raises DependencyError.
    """
    kinesis = client("kinesis", access)
    record = {"PartitionKey": PROBE_TABLE, "Data": b'{"type": "doctor"}'}
    grant = f"kinesis:PutRecord on the stream {name}"
    _asked(
        retry,
        lambda: kinesis.put_record(**stream_named(name), **record),
        ("put a record", f"stream {name}", grant),
    )


def stream_named(name: str) -> dict[str, str]:
    """How the API names a stream that a person named, be it by its ARN."""
    return {"StreamARN" if name.startswith("arn:") else "StreamName": name}


def _asked(retry: Retry, question: Callable[[], T], meaning: tuple[str, str, str]) -> T:
    action, resource, grant = meaning
    try:
        return retry.run(question, is_transient)
    except AWS_ERRORS as error:
        raise explained(error, action=action, resource=resource, grant=grant) from error
