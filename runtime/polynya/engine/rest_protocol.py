"""The read part of Iceberg's REST catalog protocol: from a request to its answer, without a socket.

Paths, parameters, statuses and the error model are those of the Iceberg REST Catalog API
(apache/iceberg, open-api/rest-catalog-open-api.yaml, version 0.0.1 as of Iceberg 1.10). Each write
of it is refused with status 406.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from polynya.engine.served_catalog import (
    Kind,
    Loaded,
    Namespace,
    NotInCatalogError,
    ServedCatalog,
    Snapshots,
)
from polynya.model.errors import DependencyError, PolynyaError
from polynya.model.names import shown
from polynya.observe.events import one_line

#: What separates the levels of a namespace in a path, by the specification.
_LEVEL_SEPARATOR: Final = "\x1f"
#: Characters that no name may have; the separator is taken out before.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_MAX_PARAMETERS: Final = 20
#: Names of a page, where the client pages and does not say how many.
_PAGE: Final = 1000
_NAMESPACES: Final = "/v1/{prefix}/namespaces"
_NAMESPACE: Final = f"{_NAMESPACES}/{{namespace}}"
#: What clients may ask, in the words of the specification. They refuse the rest by themselves.
ENDPOINTS: Final = (
    f"GET {_NAMESPACES}",
    f"GET {_NAMESPACE}",
    f"HEAD {_NAMESPACE}",
    f"GET {_NAMESPACE}/tables",
    f"GET {_NAMESPACE}/tables/{{table}}",
    f"HEAD {_NAMESPACE}/tables/{{table}}",
    f"GET {_NAMESPACE}/views",
    f"GET {_NAMESPACE}/views/{{view}}",
    f"HEAD {_NAMESPACE}/views/{{view}}",
)
_READS: Final = frozenset({"GET", "HEAD"})
_WRITES: Final = frozenset({"POST", "PUT", "DELETE"})
#: Methods that any path knows.
METHODS: Final = tuple(sorted(_READS | _WRITES))
READ_ONLY: Final = "this catalog is read-only: Polynya alone writes its tables and views"
#: Parts of the protocol below a namespace, or a table, that this catalog does not have.
_REFUSED_OF_NAMESPACE: Final = frozenset({"properties", "register", "register-view", "functions"})
_REFUSED_OF_TABLE: Final = frozenset({"credentials", "metrics", "plan", "tasks", "sign"})
_REFUSED: Final = (
    ("tables", "rename"),
    ("views", "rename"),
    ("transactions", "commit"),
    ("oauth", "tokens"),
)


@dataclass(frozen=True, slots=True)
class RestRequest:
    """A request: `target` is the path with its parameters, as the client sent it."""

    method: str
    target: str
    if_none_match: str = ""


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """An answer, and the error that the operator has to know of, if there is one.

    `body` is JSON; `about` the name of a table or view that was loaded.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    about: str = ""
    error: PolynyaError | None = None


class RestError(Exception):
    """An answer that says why there is no other one, in the error model of the specification."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message

    def answer(self, error: PolynyaError | None = None, about: str = "") -> RestAnswer:
        """The answer. `error` is for the operator's log."""
        model = {"message": self.message, "type": self.kind, "code": self.status}
        return RestAnswer(self.status, as_json({"error": model}), {}, about, error)


def as_json(document: object) -> bytes:
    """A document as it is sent."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def bad_request(message: str) -> RestError:
    """The client sent what cannot be understood."""
    return RestError(400, "BadRequestException", message)


def answer(request: RestRequest, catalog: ServedCatalog) -> RestAnswer:
    """The answer to a request. It never raises."""
    about = ""
    try:
        path, parameters = _parsed(request.target)
        about = ".".join(part for part in path[2:] if part not in {"tables", "views"})
        found = _answer(request, path, parameters, catalog)
    except RestError as refused:
        return refused.answer()
    except PolynyaError as error:
        # A dependency that fails now may work later.
        later = isinstance(error, DependencyError)
        kind = "ServiceUnavailableException" if later else "ServiceFailureException"
        return RestError(503 if later else 500, kind, one_line(error)).answer(error, about)
    except Exception as error:  # noqa: BLE001 - one table's fault must not end the server
        from polynya.engine.errors import as_polynya

        known = as_polynya(error)
        text = f"the server failed ({known.code}); its log says why"
        return RestError(500, "ServiceFailureException", text).answer(known, about)
    return found


def _parsed(target: str) -> tuple[list[str], dict[str, str]]:
    """The parts of the path, and the parameters. Raises RestError."""
    path, _, query = target.partition("?")
    if not path.startswith("/") or "#" in target:
        raise bad_request("the path does not begin with `/`")
    try:
        parts = [unquote(part, errors="strict") for part in path[1:].split("/")]
        given = parse_qs(
            query,
            keep_blank_values=True,
            strict_parsing=bool(query),
            errors="strict",
            max_num_fields=_MAX_PARAMETERS,
        )
    except ValueError:
        raise bad_request("the path or its parameters are not UTF-8 in percent-encoding") from None
    if any(_CONTROL.search(part.replace(_LEVEL_SEPARATOR, "")) for part in parts):
        raise bad_request("a name has control characters")
    return parts, {name: values[-1] for name, values in given.items()}


def _answer(
    request: RestRequest,
    path: Sequence[str],
    parameters: Mapping[str, str],
    catalog: ServedCatalog,
) -> RestAnswer:
    method = request.method
    if method not in METHODS:
        message = f"the method {shown(method)} is not part of the protocol"
        refused = RestError(405, "UnsupportedOperationException", message).answer()
        return RestAnswer(refused.status, refused.body, {"Allow": ", ".join(METHODS)})
    known = _is_known(path)
    if not known:
        raise RestError(404, "NotFoundException", "the REST catalog protocol has no such path")
    if known == "refused" or method in _WRITES:
        raise RestError(406, "UnsupportedOperationException", READ_ONLY)
    match path[1:]:
        case ["config"]:
            return _found(_config(catalog))
        case ["namespaces"]:
            return _found(_list_namespaces(parameters, catalog))
        case ["namespaces", levels]:
            return _load_namespace(method, _namespace(levels), catalog)
        case ["namespaces", levels, "tables" | "views" as kind]:
            return _list_names(_namespace(levels), kind, parameters, catalog)
        case ["namespaces", levels, "tables", name]:
            return _load_table(request, _namespace(levels), name, parameters, catalog)
        case ["namespaces", levels, "views", name]:
            return _load_view(request, _namespace(levels), name, catalog)
    raise AssertionError("the path is known")


def _is_known(path: Sequence[str]) -> str:
    """`read` for a path that is answered, `refused` for another of the protocol, else ""."""
    if path[:1] != ["v1"]:
        return ""
    match path[1:]:
        case ["config"] | ["namespaces"]:
            return "read"
        case ["namespaces", _] | ["namespaces", _, "tables" | "views"]:
            return "read"
        case ["namespaces", _, "tables" | "views", _]:
            return "read"
        case ["namespaces", _, part] if part in _REFUSED_OF_NAMESPACE:
            return "refused"
        case ["namespaces", _, "tables", _, part, *_] if part in _REFUSED_OF_TABLE:
            return "refused"
        case [*rest] if tuple(rest) in _REFUSED:
            return "refused"
    return ""


def _found(document: object) -> RestAnswer:
    return RestAnswer(200, as_json(document))


def _config(catalog: ServedCatalog) -> dict[str, Any]:
    return {"defaults": catalog.properties, "overrides": {}, "endpoints": list(ENDPOINTS)}


def _namespace(text: str) -> Namespace:
    levels = tuple(text.split(_LEVEL_SEPARATOR))
    if not all(levels):
        raise bad_request("a level of the namespace is empty")
    return levels


def _unknown_namespace(namespace: Namespace) -> RestError:
    return RestError(
        404, "NoSuchNamespaceException", f"Namespace does not exist: {_name(namespace)}"
    )


def _name(levels: Sequence[str]) -> str:
    return shown(".".join(levels))


def _list_namespaces(parameters: Mapping[str, str], catalog: ServedCatalog) -> dict[str, Any]:
    parent = parameters.get("parent", "")
    above = _namespace(parent) if parent else ()
    namespaces = catalog.namespaces()
    if above and above not in namespaces:
        raise _unknown_namespace(above)
    below = sorted(
        one for one in namespaces if len(one) == len(above) + 1 and one[:-1] == tuple(above)
    )
    page, token = _paged([one[-1] for one in below], parameters)
    return {"namespaces": [[*above, name] for name in page], "next-page-token": token}


def _load_namespace(method: str, namespace: Namespace, catalog: ServedCatalog) -> RestAnswer:
    properties = catalog.namespaces().get(namespace)
    if properties is None:
        raise _unknown_namespace(namespace)
    if method == "HEAD":
        return RestAnswer(204)
    return _found({"namespace": list(namespace), "properties": properties})


def _list_names(
    namespace: Namespace, kind: str, parameters: Mapping[str, str], catalog: ServedCatalog
) -> RestAnswer:
    asked: Kind = "table" if kind == "tables" else "view"
    try:
        names = catalog.names(namespace, asked)
    except NotInCatalogError:
        raise _unknown_namespace(namespace) from None
    page, token = _paged(names, parameters)
    identifiers = [{"namespace": list(namespace), "name": name} for name in page]
    return _found({"identifiers": identifiers, "next-page-token": token})


def _load_table(
    request: RestRequest,
    namespace: Namespace,
    name: str,
    parameters: Mapping[str, str],
    catalog: ServedCatalog,
) -> RestAnswer:
    try:
        if request.method == "HEAD":
            return _exists(catalog, namespace, name, "table")
        loaded = catalog.table(namespace, name, _snapshots(parameters))
    except NotInCatalogError:
        message = f"Table does not exist: {_name([*namespace, name])}"
        raise RestError(404, "NoSuchTableException", message) from None
    # The specification has it for tables alone.
    tag = f'"{sha256(loaded.version.encode()).hexdigest()[:32]}"'
    if tag in [one.strip().removeprefix("W/") for one in request.if_none_match.split(",")]:
        return RestAnswer(304, headers={"ETag": tag})
    return RestAnswer(200, _loaded(loaded), {"ETag": tag}, _about(namespace, name))


def _load_view(
    request: RestRequest, namespace: Namespace, name: str, catalog: ServedCatalog
) -> RestAnswer:
    try:
        if request.method == "HEAD":
            return _exists(catalog, namespace, name, "view")
        loaded = catalog.view(namespace, name)
    except NotInCatalogError:
        message = f"View does not exist: {_name([*namespace, name])}"
        raise RestError(404, "NoSuchViewException", message) from None
    return RestAnswer(200, _loaded(loaded), {}, _about(namespace, name))


def _exists(catalog: ServedCatalog, namespace: Namespace, name: str, kind: Kind) -> RestAnswer:
    if not catalog.has(namespace, name, kind):
        raise NotInCatalogError
    return RestAnswer(204)


def _about(namespace: Namespace, name: str) -> str:
    return ".".join([*namespace, name])


def _loaded(loaded: Loaded) -> bytes:
    """`LoadTableResult` and `LoadViewResult`; the metadata is passed on as it is stored."""
    location = json.dumps(loaded.location).encode()
    return b'{"metadata-location":%b,"metadata":%b,"config":{}}' % (location, loaded.metadata)


def _snapshots(parameters: Mapping[str, str]) -> Snapshots:
    match parameters.get("snapshots", "all"):
        case "all" | "":
            return "all"
        case "refs":
            return "refs"
        case other:
            raise bad_request(f"`snapshots` is `all` or `refs`, not {shown(other)}")


def _paged(names: Sequence[str], parameters: Mapping[str, str]) -> tuple[list[str], str | None]:
    """A page of sorted names, and the token of the next one.

    Without `pageToken` the client wants no pages. A token holds the last name before its page, so
    names that come and go meanwhile neither repeat nor hide others.
    """
    token = parameters.get("pageToken")
    if token is None:
        return list(names), None
    after = _last_name(token) if token else None
    left = [name for name in names if after is None or name > after]
    size = _size(parameters.get("pageSize"))
    page = left[:size]
    if len(left) <= size:
        return page, None
    return page, base64.urlsafe_b64encode(page[-1].encode()).decode().rstrip("=")


def _last_name(token: str) -> str:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        raise bad_request("the page token is not one of this server") from None


def _size(text: str | None) -> int:
    if text is None:
        return _PAGE
    if not (text.isascii() and text.isdecimal() and int(text[:10]) > 0):
        raise bad_request("`pageSize` is a number of at least 1")
    return min(int(text[:10]), _PAGE)
