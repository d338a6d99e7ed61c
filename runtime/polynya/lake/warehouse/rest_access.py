"""Properties by which Java and PyIceberg reach a REST catalog."""

from __future__ import annotations

from typing import Final

from polynya.model.config.catalog import RestAccess

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
