"""The pages of a resource: what a request asks for, and which page an answer leads to. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from polynya.formats.errors import UnreadableFileError
from polynya.formats.records.json_documents import MISSING, records_of_page, value_of_page
from polynya.model.config.http_connection import HttpConnection
from polynya.model.config.http_source import (
    Cursors,
    LinkHeader,
    NextAddress,
    Offsets,
    PageNumbers,
    Resource,
    Scalar,
)
from polynya.store.http_client import HttpAnswer
from polynya.streams.rest.addresses import address, followed
from polynya.streams.rest.incremental import keys_of
from polynya.streams.rest.position import PageContent, Place

#: A link of the header `Link`: its address, and its parameters (RFC 8288 section 3).
_LINK: Final = re.compile(r'<([^<>]*)>((?:\s*;\s*[^\s=;,"]+(?:\s*=\s*(?:"[^"]*"|[^\s";,]*))?)*)')
_REL: Final = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s";,]*))', re.IGNORECASE)
#: More of a header is not looked at, so that a hostile one takes no time.
_HEADER_CHARACTERS: Final = 16 * 1024
_MOST_CURSOR: Final = 8 * 1024


@dataclass(frozen=True, slots=True)
class Asked:
    """The place of a page, the address at which it was asked for, and what was answered."""

    place: Place
    url: str
    answer: HttpAnswer


def request_address(
    connection: HttpConnection,
    resource: Resource,
    path: str,
    place: Place,
    since: str | None,
) -> str:
    """The address of a page; `path` is that of the resource, `since` the value to begin at.

    Raises DependencyError POLYNYA-STR-105.
    """
    url = place.get("url")
    if url is not None:
        # It comes from a landed batch: somebody else may have written that.
        return followed(connection, connection.url, str(url))
    parameters: dict[str, Scalar | tuple[Scalar, ...]] = dict(resource.parameters)
    if resource.incremental is not None and since is not None:
        parameters[resource.incremental.parameter] = since
    match resource.pagination:
        case PageNumbers(parameter=name, first=first):
            parameters[name] = place.get("page", first)
        case Offsets(parameter=name):
            parameters[name] = place.get("offset", 0)
        case Cursors(parameter=name) if "cursor" in place:
            parameters[name] = place["cursor"]
    return address(connection.url, path, parameters)


def page_of(connection: HttpConnection, resource: Resource, asked: Asked) -> PageContent:
    """The content of an answer to a request.

    Raises:
        UnreadableFileError: it is not JSON, is cut off, or lacks a path.
        DependencyError: POLYNYA-STR-105, the address of the next page is refused.
    """
    answer = asked.answer
    if answer.status == 204:
        return PageContent((), None)
    try:
        records = records_of_page(answer.body, keys_of(resource.record_path))
        following = _following(connection, resource, asked, len(records))
    except UnreadableFileError as error:
        kind = (answer.header("Content-Type") or "").partition(";")[0].strip().lower()
        if "json" in kind or not kind:
            raise
        raise UnreadableFileError(f"{error}; its content type is {kind[:60]!r}") from None
    return PageContent(records, following)


def _following(
    connection: HttpConnection, resource: Resource, asked: Asked, count: int
) -> Place | None:
    """The place after a page with `count` records."""
    body, place = asked.answer.body, asked.place
    match resource.pagination:
        case PageNumbers() as pages:
            number = int(place.get("page", pages.first))
            total = _number(body, pages.total_pages)
            last = total is not None and number - pages.first + 1 >= total
            over = not count or last or not _has_more(body, pages.more)
            return None if over else {"page": number + 1}
        case Offsets() as offsets:
            # A server may give fewer records than were asked for.
            offset = int(place.get("offset", 0)) + count
            total = _number(body, offsets.total)
            over = not count or (total is not None and offset >= total)
            return None if over or not _has_more(body, offsets.more) else {"offset": offset}
        case Cursors() as cursors:
            found = _cursor(asked.answer, cursors)
            return None if found is None else {"cursor": found}
        case LinkHeader():
            given = next_link(asked.answer.header("Link") or "")
        case NextAddress(path=path):
            given = _next_value(body, path)
        case None:
            return None
    return None if given is None else {"url": followed(connection, asked.url, given)}


def _cursor(answer: HttpAnswer, cursors: Cursors) -> str | None:
    if not _has_more(answer.body, cursors.more):
        return None
    if cursors.path is not None:
        return _next_value(answer.body, cursors.path)
    found = answer.header(cursors.header or "")
    return _short(found) if found else None


def _next_value(body: bytes, path: str) -> str | None:
    found = value_of_page(body, keys_of(path))
    if found is MISSING or found in (None, "", False):
        return None
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise UnreadableFileError(f"`{path}` is no text and no whole number")
    return _short(str(found))


def _short(text: str) -> str:
    if len(text) > _MOST_CURSOR:
        raise UnreadableFileError(f"a cursor of more than {_MOST_CURSOR:,} characters")
    return text


def _number(body: bytes, path: str | None) -> int | None:
    if path is None:
        return None
    found = value_of_page(body, keys_of(path))
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 20:
        return int(found)
    if isinstance(found, bool) or not isinstance(found, int):
        raise UnreadableFileError(f"`{path}` is not a whole number")
    return found


def _has_more(body: bytes, path: str | None) -> bool:
    if path is None:
        return True
    found: Any = value_of_page(body, keys_of(path))
    if not isinstance(found, bool):
        raise UnreadableFileError(f"`{path}` is not a boolean")
    return found


def next_link(header: str) -> str | None:
    """The address with `rel="next"` in a header `Link`, None where there is none."""
    for link in _LINK.finditer(header[:_HEADER_CHARACTERS]):
        relation = _REL.search(link[2])
        if relation and "next" in (relation[1] or relation[2] or "").lower().split():
            return link[1]
    return None
