"""Properties by which Java and PyIceberg reach a REST catalog, and PyIceberg files in S3."""

from __future__ import annotations

from typing import Final

from polynya.model.config.aws import AwsAccess
from polynya.model.config.catalog import RestAccess
from polynya.model.config.target import ResolvedTarget
from polynya.model.names import S3Location

#: The header that asks a catalog for the credentials of a table's files.
DELEGATION: Final = "X-Iceberg-Access-Delegation"


def rest_properties(access: RestAccess) -> dict[str, str]:
    """What Java and PyIceberg both have to know, but for secrets."""
    properties = {"uri": access.uri}
    named = {
        "warehouse": access.warehouse,
        "prefix": access.prefix,
        "scope": access.scope,
        "oauth2-server-uri": access.oauth2_server_uri,
    }
    properties |= {name: value for name, value in named.items() if value is not None}
    if access.vended_credentials:
        properties[f"header.{DELEGATION}"] = "vended-credentials"
    if access.sigv4 is not None:
        properties |= {
            "rest.sigv4-enabled": "true",
            "rest.signing-name": access.sigv4.name,
            "rest.signing-region": access.sigv4.region,
        }
    return properties


def rest_secrets(access: RestAccess) -> dict[str, str]:
    """The login, which no file, command line or message may show."""
    given = {"credential": access.credential, "token": access.token}
    return {name: value.get_secret_value() for name, value in given.items() if value is not None}


def s3_for_python(target: ResolvedTarget) -> dict[str, str]:
    """How PyIceberg reaches the files of a target in S3; nothing for a folder."""
    if not isinstance(target.warehouse, S3Location):
        return {}
    properties = {"client.region": region(target.aws)}
    if target.aws.endpoint is not None:
        properties["s3.endpoint"] = target.aws.endpoint
    return properties


def region(access: AwsAccess) -> str:
    """One region for Java, Arrow and boto3, which would look for it in different places."""
    # Start-up time: the AWS SDK.
    from polynya.store.aws.clients import region_of

    return region_of(access)
