"""Questions to AWS: who we are, permissions, secrets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar
from uuid import uuid4

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.clients import (
    AWS_ERRORS,
    client,
    code_of,
    explained,
    is_denied,
    is_transient,
)
from polynya.store.aws.kinesis import KinesisStream
from polynya.store.clock import Retry

_ARN: Final = "arn:"


def secret_text(name: str, retry: Retry | None = None) -> str | None:
    """The text of an entry, by its name or ARN; None when there is none.

    An ARN says its region; a name is looked up in that of the process. Raises DependencyError.
    """
    region = name.split(":")[3] if name.startswith(_ARN) else None
    secrets = client("secretsmanager", AwsAccess(region=region))
    try:
        found = (retry or Retry(deadline=10.0)).run(
            lambda: secrets.get_secret_value(SecretId=name), is_transient
        )
    except AWS_ERRORS as error:
        if code_of(error) == "ResourceNotFoundException":
            return None
        raise explained(
            error,
            action="read the secret",
            resource=f"secret {name}",
            grant=f"secretsmanager:GetSecretValue on the secret {name}",
        ) from error
    text = found.get("SecretString")
    return None if text is None else str(text)


_EVERYONE: Final = "IAM_ALLOWED_PRINCIPALS"


def new_tables_open_to_iam(access: AwsAccess, retry: Retry) -> bool:
    """Whether IAM alone decides which principals read a new table, as in a new account.

    Raises DependencyError.
    """
    lake = client("lakeformation", access)
    try:
        answer = retry.run(lake.get_data_lake_settings, is_transient)
    except AWS_ERRORS as error:
        raise explained(
            error,
            action="read the settings of Lake Formation",
            resource="AWS Lake Formation",
            grant="lakeformation:GetDataLakeSettings",
        ) from error
    return any(
        default["Principal"]["DataLakePrincipalIdentifier"] == _EVERYONE
        for default in answer["DataLakeSettings"].get("CreateTableDefaultPermissions", [])
    )


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
) -> bool:
    """Try to create, change and delete a view of no use in a Glue database; nothing stays.

    Deleting is asked first, of a view that does not exist: nodes may not delete. What they could
    create would stay, so then only a change is asked, of that same view. IAM decides about both
    requests before Glue looks for the view.

    Returns:
        Whether all three were tried; False when these credentials may not delete.

    Raises DependencyError with the grant that is missing.
    """
    glue = client("glue", access)
    of = {"DatabaseName": database, **({"CatalogId": catalog_id} if catalog_id else {})}
    name = f"{PROBE_TABLE}_{uuid4().hex}"
    definition = {"Name": name, "TableType": "VIRTUAL_VIEW", "ViewOriginalText": "SELECT 1"}

    def meaning(action: str, right: str) -> tuple[str, str, str]:
        on = f"{right} on the catalog, the database {database} and its tables"
        return f"{action} a view", f"Glue database {database}", on

    def delete() -> None:
        glue.delete_table(Name=name, **of)

    def change() -> None:
        glue.update_table(TableInput=definition, **of)

    def may_delete() -> bool:
        try:
            _without_it(delete)
        except AWS_ERRORS as error:
            if is_denied(error):
                return False
            raise
        return True

    changing = meaning("change", "glue:UpdateTable")
    if not _asked(retry, may_delete, meaning("delete", "glue:DeleteTable")):
        _asked(retry, lambda: _without_it(change), changing)
        return False
    _asked(
        retry,
        lambda: glue.create_table(TableInput=definition, **of),
        meaning("create", "glue:CreateTable"),
    )
    try:
        _asked(retry, change, changing)
    finally:
        _asked(retry, delete, meaning("delete", "glue:DeleteTable"))
    return True


def _without_it(step: Callable[[], None]) -> None:
    """Take a step on a view that does not exist; only that Glue misses it is well."""
    try:
        step()
    except AWS_ERRORS as error:
        if code_of(error) != "EntityNotFoundException":
            raise


def try_stream_write(access: AwsAccess, name: str, retry: Retry) -> None:
    """Put one record that identifies itself; readers of the stream skip it.

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
