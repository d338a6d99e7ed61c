"""A client of a schema registry with Confluent's interface, over HTTP.

A registered schema never changes under its number, so the client asks for each schema once.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final, Protocol
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

from typing_extensions import override

from polynya.model.error_catalogue.stream_sources import (
    SCHEMA_REGISTRY_DENIED,
    SCHEMA_REGISTRY_MISADDRESSED,
    SCHEMA_REGISTRY_UNREACHABLE,
)
from polynya.model.errors import DependencyError

_TIMEOUT_SECONDS: Final = 10.0
_MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
#: How an answer of 404 says that it is about a schema, subject or version: any server knows 404.
_UNKNOWN: Final = frozenset({40401, 40402, 40403})
_STATE: Final = "nothing of the landed batch was copied; it is read again at the next try"


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that a schema uses, by the name of its type."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as the registry has it; `kind` is `AVRO`, `JSON` or `PROTOBUF`."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()


class SchemaLookup(Protocol):
    """Schemas by their number, and those that they refer to.

    Both raise DependencyError when the registry does not answer.
    """

    def by_number(self, number: int) -> RegisteredSchema | None:
        """The schema with a number, None when there is none."""
        ...

    def by_version(self, subject: str, version: int) -> RegisteredSchema | None:
        """A version of a subject, None when there is none."""
        ...


class HttpSchemaRegistry(SchemaLookup):
    """Asks a registry; what it finds it keeps."""

    def __init__(self, url: str, user: str | None = None, password: str | None = None) -> None:
        self._url = url
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if user is not None:
            pair = f"{user}:{password or ''}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        # A redirect could carry the password to another host.
        self._opener = build_opener(_NoRedirect())
        self._known: dict[str, RegisteredSchema] = {}

    @override
    def by_number(self, number: int) -> RegisteredSchema | None:
        return self._schema(f"/schemas/ids/{number}")

    @override
    def by_version(self, subject: str, version: int) -> RegisteredSchema | None:
        return self._schema(f"/subjects/{quote(subject, safe='')}/versions/{version}")

    def _schema(self, path: str) -> RegisteredSchema | None:
        if path not in self._known:
            answer = self._asked(path)
            if answer is None:
                return None
            self._known[path] = self._read(answer)
        return self._known[path]

    def _asked(self, path: str) -> bytes | None:
        # The scheme is http or https: the settings take no other.
        request = Request(self._url + path, headers=self._headers)  # noqa: S310
        try:
            with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                data: bytes = answer.read(_MAX_ANSWER_BYTES)
        except HTTPError as error:
            with error:
                if error.code == 404 and _is_about_schemas(error):
                    return None
                if error.code == 404:
                    raise SCHEMA_REGISTRY_MISADDRESSED(where=self._url) from error
                if error.code in {401, 403}:
                    raise SCHEMA_REGISTRY_DENIED(where=self._url, status=error.code) from error
                raise self._unreachable(f"it answers {error.code}") from error
        except (OSError, HTTPException) as error:
            raise self._unreachable(str(error) or type(error).__name__) from error
        return data

    def _read(self, data: bytes) -> RegisteredSchema:
        try:
            said: Mapping[str, Any] = json.loads(data)
            references = tuple(
                Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
                for one in said.get("references") or ()
            )
            return RegisteredSchema(
                str(said.get("schemaType") or "AVRO"), str(said["schema"]), references
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._unreachable(f"its answer is not a schema: {error!r}") from error

    def _unreachable(self, reason: str) -> DependencyError:
        return SCHEMA_REGISTRY_UNREACHABLE(where=self._url, reason=reason)


def _is_about_schemas(error: HTTPError) -> bool:
    """Whether a registry says that it has no such schema, and not something else on the way."""
    try:
        said = json.loads(error.read(_MAX_ANSWER_BYTES))
    except (ValueError, OSError, HTTPException, RecursionError):
        return False
    return isinstance(said, dict) and said.get("error_code") in _UNKNOWN


class _NoRedirect(HTTPRedirectHandler):
    """Takes a redirect for the error that it is here."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Follow none."""
        return
