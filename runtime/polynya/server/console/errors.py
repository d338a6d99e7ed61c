"""The pages of errors: what a code means, in what state the data is, and what to do."""

from __future__ import annotations

import re
from typing import Annotated, Final

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from polynya.model.error_catalogue.codes import ERROR_PAGES
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.html import render
from polynya.server.console.page import page_router
from polynya.server.pages import Cursor, page

router = page_router()

_CODES_OF_A_PAGE: Final = 100
#: Codes that a page names, such as the others of a text.
_CODE: Final = re.compile(r"POLYNYA-[A-Z]+-[0-9]+")


@router.get("/errors", dependencies=[allowed(Action.LOG_IN)])
def errors(
    request: Request, find: Annotated[str, Query(max_length=200)] = "", cursor: Cursor = None
) -> HTMLResponse:
    """All codes, or those whose code or title has a text."""
    wanted = find.casefold()
    found = [
        one
        for _, one in sorted(ERROR_PAGES.items())
        if wanted in one.code.casefold() or wanted in one.title.casefold()
    ]
    part = page(found, lambda one: (one.code, one.code), _CODES_OF_A_PAGE, cursor)
    return render(request, "errors.html", fragment="list", errors=part, find=find, cursor=cursor)


@router.get("/errors/{code}", dependencies=[allowed(Action.LOG_IN)])
def error(request: Request, code: str) -> HTMLResponse:
    """One code, as `polynya explain` has it."""
    entry = ERROR_PAGES.get(code.upper())
    if entry is None:
        raise NO_SUCH_RESOURCE(what=f"error code {shown(code)}")
    named = set(_CODE.findall(entry.page)) & ERROR_PAGES.keys()
    return render(
        request,
        "error.html",
        error=entry,
        parts=entry.parts(),
        paragraphs=[one.strip() for one in entry.page.split("\n\n") if one.strip()],
        others=[ERROR_PAGES[one] for one in sorted(named - {entry.code})],
    )
