"""Errors of the API server (SRV-001 to 039)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, ConflictError, DependencyError, OperationError

NO_SUCH_RESOURCE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-001",
    title="the server has nothing below this path",
    message="the server has no {what}",
    state="nothing was changed",
    page="The path of a request names a resource that the project does not have, or no route of "
    "the API. The lists (`/api/v1/datasets`, `/api/v1/tasks`) have the names, and "
    "`/api/v1/openapi.json` has every route.",
)
REQUEST_INVALID: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-002",
    title="a request that the API does not understand",
    message="{reason}",
    state="nothing was changed",
    fix="correct the request; `/api/v1/openapi.json` describes each route",
    page="A parameter or the body of a request is unknown, lacks a value, or has a wrong one. The "
    "answer names it.",
)
METHOD_NOT_ALLOWED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-003",
    title="a method that this path does not have",
    message="{path} has no method {method}",
    state="nothing was changed",
    page="The path exists, with other methods: the header `Allow` of the answer lists them.",
)
SERVER_BUSY: Final = ErrorEntry(
    OperationError,
    "POLYNYA-SRV-005",
    title="the server answers too many queries",
    message="{most} queries are running already",
    state="nothing was read",
    fix="repeat the query in a moment",
    page="The server answers few queries at a time, because each may take much memory and all "
    "processors. Others are refused with status 503.",
)

PART_SILENT: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-SRV-010",
    title="what a page shows has no answer in time",
    message="no answer within {seconds} s",
    state="nothing was changed",
    fix="wait: the page asks again by itself. If it stays so, look at what the page reads: the "
    "warehouse, the landing zone, the coordination place or the state of the target",
    page="A page of the console waits some seconds for what it shows. What hangs then is not asked "
    "again until it has ended. The page says since when it is not known, and shows all others.",
)
PLACE_UNREACHABLE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-SRV-011",
    title="what a page reads cannot be reached",
    message="it cannot be read: {reason}",
    state="nothing was changed",
    fix="wait: the page asks again by itself. If it stays so, look at what the page reads: the "
    "warehouse, the landing zone, the coordination place or the state of the target",
    page="The system refused a read: a network, a disk or a server does not answer. The page says "
    "since when, and shows all that it knows from elsewhere.",
)
DOCUMENT_CHANGED: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-SRV-008",
    title="a document has changed since it was read",
    message="{path} is not what the request expects",
    state="the document is unchanged",
    fix="read it again, and repeat the change on what it says now",
    page="A change names, with `If-Match`, the version of the document that it begins with: the "
    "`ETag` that came with it, or `*` for a document that is new. Somebody else has changed the "
    "document meanwhile, or the header is missing.",
)
DOCUMENT_PATH_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-009",
    title="a path that no document of a project has",
    message="{path} cannot be a document of the project",
    state="nothing was changed",
    fix="name a file such as `tasks/shop.yml` or `sql/orders.sql`, below the project",
    page="Documents are the files that make a project: `polynya.yml`, and those in its folders "
    "`tasks`, `connections`, `bindings`, `tests`, `sql` and `queries`. A path with `..`, a hidden "
    "file, or a link that leads out of the project is refused.",
)
