"""Entries of AWS Secrets Manager."""

from __future__ import annotations

from typing import Final

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.clients import AWS_ERRORS, client, code_of, explained, is_transient
from polynya.store.retry import Retry

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
