"""Clients of AWS, and what its refusals mean: which will pass, and which grant is missing."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    MetadataRetrievalError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    ResponseStreamingError,
    TokenRetrievalError,
)
from botocore.exceptions import (
    ConnectionError as ConnectionFailed,
)
from urllib3.exceptions import HTTPError

from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.machine import (
    AWS_NO_ANSWER,
    AWS_REFUSED,
    NO_AWS_IDENTITY,
    NO_SUCH_BUCKET,
)
from polynya.model.errors import DependencyError
from polynya.store.aws.machine_role import may_have_role

#: Everything that a call of a client may raise when AWS, or the way there, fails.
AWS_ERRORS: Final = (BotoCoreError, ClientError, HTTPError)

_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 20
_PASSING: Final = frozenset(
    {
        "ConditionalRequestConflict",
        "InternalError",
        "OperationAborted",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException", "AllAccessDisabled", "403"})
_IDENTITY: Final = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
#: Raised when the service that has the credentials of a role is slow or fails.
_LATE_IDENTITY: Final = (CredentialRetrievalError, MetadataRetrievalError, NoCredentialsError)
_NO_IDENTITY: Final = (
    *_LATE_IDENTITY,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
)


def client(service: str, access: AwsAccess) -> Any:
    """A client of one service that makes a single attempt: its caller decides on retries.

    On a machine with a role it may be made before there are credentials. Then its calls raise
    NoCredentialsError, which is transient, until there are some.

    Raises:
        DependencyError: the SDK finds no region (POLYNYA-AWS-001).
    """
    lasting = _LastingClient(lambda: _sdk_client(service, access))
    try:
        lasting.ready()
    except _NO_IDENTITY as error:
        if not is_transient(error):
            raise NO_AWS_IDENTITY(reason=error) from error
    return lasting


class _LastingClient:
    """A client of the SDK that is made when there are credentials, and then kept.

    The SDK looks for credentials once, when it makes a client: one that is made in a second in
    which the metadata service is slow would have none for as long as the process lives.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None
        self._attempts = 0
        self._failure: Exception = NoCredentialsError()
        self._lock = Lock()

    def ready(self) -> Any:
        """The client of the SDK. Raises what the SDK raises when it cannot be made."""
        if (made := self._made) is not None:
            return made
        attempts = self._attempts
        with self._lock:
            # An attempt may take seconds: threads that waited for one share what came of it.
            if self._made is None and attempts == self._attempts:
                self._attempts += 1
                try:
                    self._made = self._make()
                except BotoCoreError as error:
                    self._failure = error
            if self._made is None:
                raise self._failure
            return self._made

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        if operation.startswith("_"):
            raise AttributeError(operation)

        def call(*given: Any, **named: Any) -> Any:
            # Only here, so that a call that is retried makes the client again.
            return getattr(self.ready(), operation)(*given, **named)

        return call


def _sdk_client(service: str, access: AwsAccess) -> Any:
    settings = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retries={"total_max_attempts": 1},
        # Servers that stand in for S3 have no host name per bucket.
        s3={"addressing_style": "path"} if access.endpoint else None,
        max_pool_connections=32,
    )
    session = boto3.session.Session(
        region_name=access.region,
        aws_access_key_id=access.access_key_id,
        aws_secret_access_key=access.secret_access_key,
    )
    if may_have_role() and session.get_credentials() is None:
        raise NoCredentialsError
    return session.client(service, endpoint_url=access.endpoint, config=settings)


def region_of(access: AwsAccess) -> str:
    """The region that is set, else the one that the SDK finds.

    Raises:
        DependencyError: there is none (POLYNYA-AWS-001).
    """
    try:
        region = access.region or boto3.session.Session().region_name
    except _NO_IDENTITY as error:
        raise NO_AWS_IDENTITY(reason=error) from error
    if region is None:
        raise NO_AWS_IDENTITY(reason="no region is set")
    return str(region)


def code_of(error: Exception) -> str:
    """The code of a refusal, else the kind of the error."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return type(error).__name__


def status_of(error: Exception) -> int:
    """The HTTP status of an answer, 0 when there was none."""
    if not isinstance(error, ClientError):
        return 0
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def is_transient(error: Exception) -> bool:
    """Whether the same call may succeed a moment later."""
    if isinstance(error, ClientError):
        return code_of(error) in _PASSING or status_of(error) in {429, 500, 502, 503, 504}
    if isinstance(error, _LATE_IDENTITY):
        return may_have_role()
    lost = (ConnectionFailed, HTTPClientError, IncompleteReadError, ResponseStreamingError)
    return isinstance(error, (*lost, HTTPError))


def is_denied(error: Exception) -> bool:
    """Whether AWS knows the caller and denies the request."""
    return code_of(error) in _DENIED or status_of(error) == 403


def explained(error: Exception, *, action: str, resource: str, grant: str) -> DependencyError:
    """The error for the user.

    Args:
        error: one of AWS_ERRORS.
        action: what was tried, such as `read the object`.
        resource: of what, such as `s3://acme/a.json`.
        grant: the missing permission, such as `s3:GetObject on arn:aws:s3:::acme/*`.
    """
    code = code_of(error)
    if isinstance(error, _NO_IDENTITY) or code in _IDENTITY:
        return NO_AWS_IDENTITY(reason=error)
    if is_denied(error):
        message = f"AWS refuses to {action}: {code}"
        return AWS_REFUSED(message, where=resource, why=str(error), grant=grant)
    if code in {"NoSuchBucket", "PermanentRedirect", "IllegalLocationConstraintException"}:
        return NO_SUCH_BUCKET(where=resource, why=str(error))
    return AWS_NO_ANSWER(f"AWS did not {action}: {code}", where=resource, why=str(error))


def explained_text(text: str) -> DependencyError:
    """The same from the message alone, which is all that Java and Arrow hand on."""
    if "credentials" in text or any(code in text for code in _IDENTITY):
        return NO_AWS_IDENTITY(reason=text)
    if any(sign in text for sign in ("AccessDenied", "ACCESS_DENIED", "Status Code: 403")):
        return AWS_REFUSED(why=text, grant="the action that AWS names")
    if "bucket does not exist" in text or "NoSuchBucket" in text:
        return NO_SUCH_BUCKET(why=text)
    return AWS_NO_ANSWER("AWS gave an unexpected answer", why=text)
