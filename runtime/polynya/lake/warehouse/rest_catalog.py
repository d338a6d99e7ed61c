"""A catalog behind Iceberg's REST protocol, without Spark.

The server is trusted with the tables, not with this process: it may name no class to load, no other
server to send the login to, and it has a time limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from pydantic import ValidationError
from pyiceberg import exceptions
from pyiceberg.catalog.rest import Capability, RestCatalog
from pyiceberg.io import FileIO
from typing_extensions import override

from polynya.lake.warehouse.catalogs import CatalogEntry
from polynya.lake.warehouse.rest_access import (
    DELEGATION,
    rest_properties,
    rest_secrets,
    s3_for_python,
)
from polynya.model.config.catalog import RestAccess
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.warehouse import (
    CATALOG_SERVICE_REFUSED,
    CATALOG_SERVICE_UNREACHABLE,
    CATALOG_SERVICE_UNUSABLE,
)
from polynya.model.errors import PolynyaError
from polynya.model.names import shown

#: Seconds to connect, and from one byte of an answer to the next.
_TIMEOUTS: Final = (10.0, 60.0)
#: Properties by which a client loads a class, or chooses how it logs in. Java's FileIO classes that
#: Iceberg brings are no danger.
_CLASS_SUFFIXES: Final = ("-impl", ".impl", "py-io-impl", "py-catalog-impl")
_OWN: Final = frozenset({"auth", "rest.auth.type", "ssl", "credential", "token"})
_FILE_IOS: Final = "org.apache.iceberg."
_KEPT_CHARACTERS: Final = 300
#: What a table's answer may say about how its files are reached.
_OF_FILES: Final = ("s3.", "client.", "adls.", "gcs.")
_LOGIN_ERRORS: Final = (
    exceptions.UnauthorizedError,
    exceptions.ForbiddenError,
    exceptions.OAuthError,
    exceptions.AuthorizationExpiredError,
)
#: What reading an answer raises that is not what the protocol says.
_GARBAGE: Final = (ValidationError, ValueError, TypeError, LookupError, AttributeError)
_SERVER_ERRORS: Final = (
    exceptions.ServerError,
    exceptions.ServiceUnavailableError,
    exceptions.TooManyRequestsError,
    requests.ConnectionError,
    requests.Timeout,
)


class RestCatalogClient(RestCatalog):
    """PyIceberg's client with time limits, which loads no class that a server names."""

    def __init__(self, name: str, access: RestAccess, more: Mapping[str, str]) -> None:
        """Ask the server for its configuration. Raises as `asked` without it."""
        self._access = access
        properties: dict[str, Any] = {**more, **rest_properties(access), **rest_secrets(access)}
        if access.credential is None and access.token is None:
            properties["auth"] = {"type": "noop"}
        super().__init__(name, **properties)

    @override
    def _config_headers(self, session: requests.Session) -> None:
        super()._config_headers(session)
        if not self._access.vended_credentials:
            session.headers.pop(DELEGATION, None)
        # A redirect could lead the login to another server.
        session.max_redirects = 0
        send = session.send

        def send_in_time(request: requests.PreparedRequest, **given: Any) -> requests.Response:
            return send(request, **{**given, "timeout": _TIMEOUTS})

        session.send = send_in_time  # type: ignore[method-assign]

    @override
    def _fetch_config(self) -> None:
        mine = dict(self.properties)
        super()._fetch_config()
        for name, value in self.properties.items():
            if mine.get(name) != value:
                _refuse_setting(self._access, name, value)

    @override
    def _load_file_io(
        self, properties: Mapping[str, str] = {}, location: str | None = None
    ) -> FileIO:
        kept = {name: value for name, value in properties.items() if name.startswith(_OF_FILES)}
        return super()._load_file_io(kept, location)

    def has(self, endpoint: Any) -> bool:
        """Whether the server has an endpoint (`pyiceberg.catalog.rest.Capability`)."""
        return endpoint in self._supported_endpoints

    @property
    def holds_views(self) -> bool:
        """Whether views can be made and read."""
        return self.has(Capability.V1_LOAD_VIEW) and self.has(Capability.V1_LIST_VIEWS)

    def view_response(self, namespace: str, name: str) -> dict[str, Any] | None:
        """What the server says of a view, `metadata` and `metadata-location`; None without one."""
        path = self._split_identifier_for_path((namespace, name))
        url = self.url(f"namespaces/{path['namespace']}/views/{path['table']}")
        answer = self._session.get(url)
        if answer.status_code == requests.codes.unauthorized:
            self._refresh_token()
            answer = self._session.get(url)
        if answer.status_code == requests.codes.not_found:
            return None
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found


def _refuse_setting(access: RestAccess, name: str, value: Any) -> None:
    """Raise for a setting of the server that no server may make."""
    reason = None
    if name in _OWN or (name.endswith(_CLASS_SUFFIXES) and not _is_of_iceberg(name, value)):
        reason = f"it sets {shown(name)} for its clients"
    elif name in {"uri", "oauth2-server-uri"} and not _same_server(access.uri, str(value)):
        reason = f"it sends its clients to {shown(str(value))}"
    if reason is not None:
        fix = "write the address that it names as `catalog.uri`, if that is the right server"
        raise CATALOG_SERVICE_UNUSABLE(where=access.text, reason=reason, fix=fix)


def _is_of_iceberg(name: str, value: Any) -> bool:
    return name == "io-impl" and str(value).startswith(_FILE_IOS)


def _same_server(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc) == (second.scheme, second.netloc)


@contextmanager
def asked(access: RestAccess) -> Iterator[None]:
    """Explain what the server, or the way to it, does wrong inside.

    Raises DependencyError: POLYNYA-LAKE-062, 063 or 064.
    """
    try:
        yield
    except PolynyaError:
        raise
    except Exception as error:
        explained = rest_error(error, access)
        if explained is None:
            raise
        raise explained from None


def rest_error(error: BaseException, access: RestAccess | None = None) -> PolynyaError | None:
    """The error to show when a REST catalog is the cause; None for any other cause."""
    where = access.text if access is not None else "the REST catalog of the target"
    why = _without_secrets(" ".join(str(error).split()), access)[:_KEPT_CHARACTERS]
    if isinstance(error, _LOGIN_ERRORS):
        return CATALOG_SERVICE_REFUSED(where=where, why=why)
    if isinstance(error, _SERVER_ERRORS):
        return CATALOG_SERVICE_UNREACHABLE(where=where, why=why)
    if isinstance(error, requests.RequestException | exceptions.RESTError):
        return CATALOG_SERVICE_UNUSABLE(where=where, reason=why)
    if access is not None and isinstance(
        error, ValidationError | ValueError | TypeError | LookupError | AttributeError
    ):
        reason = "its answer is not one of Iceberg's REST protocol"
        return CATALOG_SERVICE_UNUSABLE(where=where, reason=reason)
    return None


def _without_secrets(text: str, access: RestAccess | None) -> str:
    for secret in rest_secrets(access).values() if access is not None else ():
        # The name of an OAuth2 client before the colon is none.
        for part in (secret, secret.partition(":")[2]):
            if part:
                text = text.replace(part, "***")
    return text


@dataclass(frozen=True, slots=True)
class _Key:
    """What tells one client from another."""

    access: RestAccess
    secrets: tuple[tuple[str, str], ...]
    more: tuple[tuple[str, str], ...]


_opened: dict[_Key, RestCatalogClient] = {}


def open_rest_catalog(target: ResolvedTarget, name: str) -> RestCatalogClient:
    """The REST catalog of a target. Raises as `asked`."""
    assert target.rest is not None, "the catalog is behind REST"
    return rest_client(target.rest, name, s3_for_python(target))


def rest_entries(target: ResolvedTarget, name: str, schemas: Collection[str]) -> list[CatalogEntry]:
    """Tables and views of schemas, in order. Raises as `asked`."""
    assert target.rest is not None, "the catalog is behind REST"
    catalog, found = open_rest_catalog(target, name), list[CatalogEntry]()
    with asked(target.rest):
        for schema in sorted(schemas):
            with suppress(exceptions.NoSuchNamespaceError):
                for *_, table in sorted(catalog.list_tables(schema)):
                    found.append(CatalogEntry(schema, table, ""))
                if catalog.holds_views:
                    for *_, view in sorted(catalog.list_views(schema)):
                        found.append(CatalogEntry(schema, view, "", is_view=True))
    return found


def view_metadata(target: ResolvedTarget, name: str, view: str) -> Any:
    """The metadata of a view, `schema.view`; None without it. Raises as `asked`."""
    assert target.rest is not None, "the catalog is behind REST"
    with asked(target.rest):
        found = open_rest_catalog(target, name).view_response(*view.split(".", 1))
        return None if found is None else found["metadata"]


def serves(target: ResolvedTarget, name: str, schema: str, table: str) -> bool:
    """Whether the REST catalog of a target has a table. Raises as `asked`."""
    assert target.rest is not None, "the catalog is behind REST"
    with asked(target.rest):
        return bool(open_rest_catalog(target, name).table_exists((schema, table)))


def rest_client(access: RestAccess, name: str, more: Mapping[str, str]) -> RestCatalogClient:
    """The client of a REST catalog; a process asks each server for its configuration once.

    `more` are properties for the FileIO of PyIceberg. Raises as `asked`.
    """
    key = _Key(access, tuple(sorted(rest_secrets(access).items())), tuple(sorted(more.items())))
    if key not in _opened:
        with asked(access):
            _opened[key] = RestCatalogClient(name, access, more)
    return _opened[key]
