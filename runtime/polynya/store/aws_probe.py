"""Questions to AWS that change nothing: who we are, what the catalog shows us."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from polynya.model.aws import AwsAccess
from polynya.store.aws import AWS_ERRORS, client, code_of, explained, is_transient
from polynya.store.retry import Retry

T = TypeVar("T")


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


def _asked(retry: Retry, question: Callable[[], T], meaning: tuple[str, str, str]) -> T:
    action, resource, grant = meaning
    try:
        return retry.run(question, is_transient)
    except AWS_ERRORS as error:
        raise explained(error, action=action, resource=resource, grant=grant) from error
