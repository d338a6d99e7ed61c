"""Errors of REST APIs as sources (STR)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, DependencyError, OperationError

_KEPT: Final = (
    "pages that were read before are landed; the read continues at this page with a growing pause"
)

API_UNREACHABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-100",
    title="the API does not answer",
    message="the API does not answer: {reason}",
    state=_KEPT,
    fix="wait, or check `url` of the connection and the network of this machine",
    page="After `retries.attempts` attempts the server still refused connections, did not answer "
    "within `timeout`, ended an answer early, or answered 5xx. A certificate that this machine "
    "does not trust is named in the reason; `ca` of the connection trusts an authority of your "
    "own. Proxies are not used.",
)
API_BUSY = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-101",
    title="the API asks to wait",
    message="the API asks to wait for {seconds:,.0f} s (status {status})",
    state="pages that were read before are landed; no request is sent before that time has passed",
    fix="wait, or set `rate_limit` of the connection below what the API allows. `retries: "
    "{{longest_wait: …}}` lets `run --once` wait for longer",
    page="The server answered 429 or 503 with `Retry-After`, in seconds or as a date. A short wait "
    "is kept without an error. An agent does other work meanwhile and comes back at that "
    "time; `run --once` waits for `retries.longest_wait` at most.",
)
API_LOGIN_REFUSED = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-102",
    title="the API refuses the login",
    message="the API refuses the login ({status})",
    state=_KEPT,
    fix="check `auth` of the connection and the secret that it names, and what that login may read",
    page="The server answered 401 or 403, or the token endpoint gave no token. After a 401 Polynya "
    "reads the secret again, or gets one new token, and repeats the request once. No message "
    "shows a secret.",
)
API_REFUSES = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-103",
    title="the API refuses a request",
    message="the API answers {status} to a request",
    state=_KEPT,
    fix="correct `path`, `parameters` or `pagination` of the resource",
    page="The server answered 4xx, such as 404 for a path that it does not have or 400 for a "
    "parameter that it does not take. When it no longer knows the place where a read was "
    "interrupted (400, 404 or 410 to a page other than the first), the read begins again, at most "
    "once in each `every`; records that land twice then become one by the keys of the table.",
)
API_ANSWER_UNUSABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-104",
    title="an answer of the API cannot be read",
    message="an answer of the API cannot be read: {reason}",
    state=_KEPT,
    fix="correct `record_path` or the paths of `pagination`, ask for smaller pages, or raise "
    "`max_response` of the connection",
    page="An answer is not JSON, is cut off, lacks the path that `record_path` or `pagination` "
    "names, or is larger than `max_response` once decompressed. Nothing of such a page lands. "
    "A login page in HTML often means that `url` is that of a website.",
)
API_ADDRESS_REFUSED = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-105",
    title="an address of the API is refused",
    message="the address {address} is refused: {reason}",
    state=_KEPT,
    fix="add the host to `allowed_hosts` of the connection if it belongs to the API. An API on "
    "this machine is named in `POLYNYA_LOCAL_APIS` of the process",
    page="A redirect or a `next` address leads to another host, from https to http, or to "
    "something that is not http. Or a name leads to this machine or to its metadata service "
    "(loopback, link-local): a configuration, or a server that is asked, could otherwise read "
    "what only this machine may read. The environment variable `POLYNYA_LOCAL_APIS` lists the "
    "hosts that are allowed, separated by spaces, such as `localhost 127.0.0.1`.",
)
API_PAGES_REPEAT = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-106",
    title="the pages of the API do not end",
    message="the pages of the API do not end: {reason}",
    state="the pages up to there are landed, some of them perhaps twice; the keys of the table "
    "make one record of them. The next read begins after `every`",
    fix="correct `pagination` of the resource: the API may ignore its parameter",
    page="A cursor or a `next` address leads back to a page that was read, a page has the same "
    "records as the one before it, or a read has more than `max_pages` pages. Polynya ends the "
    "read there. Its highest value does not count, so an incremental resource reads the same "
    "range again.",
)
INCREMENTAL_FIELD_MISSING = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-107",
    title="records have no value to continue from",
    message="none of {count:,} records has a {kind} at {path}",
    state=_KEPT,
    fix="correct `incremental.field`, or write `incremental.start` as the API writes its values",
    page="`incremental` takes the highest value of `field` as the start of the next read. Not one "
    "record of a page has a value there that is of the same kind as `start`: a number, a date or "
    "a time. Without this error each read would silently begin at `start` again.",
)
HTTP_SETTINGS_CONFLICT = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-108",
    title="settings of a REST API do not fit together",
    state="nothing was read from the API",
    page="The message says which settings exclude or need each other.",
)
HTTP_POSITION_INVALID = ErrorEntry(
    OperationError,
    "POLYNYA-STR-109",
    title="the position in a landed batch is not one of a REST API",
    message="the position in a landed batch is not one of a REST API: {error!r}",
    state="nothing was read after it; the landed batches are unchanged",
    fix="give the task a new `folder`, or restore its source",
    page="The newest landed batch holds the position in its source. Its task had another type of "
    "source when the batch was written.",
)
SECRET_IN_ADDRESS = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-110",
    title="the API puts a secret into the place of its next page",
    message="the place of the next page holds a secret of the connection",
    state=_KEPT,
    fix="use another `pagination`: `page`, `offset` or `cursor`",
    page="A landed batch holds the place of the next page, and no landed file holds a secret. "
    "Polynya removes the key of `auth: {type: api_key, in: query}` from a `next` address and "
    "adds it again when it asks; any other place with a secret is refused.",
)
