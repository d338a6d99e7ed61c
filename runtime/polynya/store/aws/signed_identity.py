"""A request that proves an IAM identity to a server: `GetCallerIdentity`, signed in advance."""

from __future__ import annotations

from typing import Final

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.session import get_session

_SECONDS: Final = 900


def signed_identity(
    header: str, server: str, region: str, credentials: ReadOnlyCredentials | None = None
) -> str | None:
    """The signed URL, good for 15 minutes; None where the SDK finds no credentials.

    Args:
        header: the header that holds the name of the server, and is signed.
        server: the name of the server.
        region: the region whose STS the server asks.
        credentials: those to sign with; default: what the SDK finds.
    """
    found = credentials
    if found is None:
        chain = get_session().get_credentials()
        if chain is None:
            return None
        found = chain.get_frozen_credentials()
    suffix = ".cn" if region.startswith("cn-") else ""
    url = f"https://sts.{region}.amazonaws.com{suffix}/?Action=GetCallerIdentity&Version=2011-06-15"
    request = AWSRequest("GET", url, headers={header: server})
    SigV4QueryAuth(found, "sts", region, expires=_SECONDS).add_auth(request)
    return str(request.url)
