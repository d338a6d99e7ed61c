"""The pages of documents: the files of the project, changed as patches that a person confirms."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse

from polynya.model.error_catalogue.server import DOCUMENT_CHANGED
from polynya.model.error_catalogue.server_console import TEXT_NOT_SHOWN
from polynya.model.errors import ConfigErrors, PolynyaError
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.forms import Posted, last
from polynya.server.console.html import is_fragment, render
from polynya.server.console.page import page_router
from polynya.server.documents import ProjectDocument
from polynya.server.pages import Cursor
from polynya.server.problems import status_of
from polynya.server.routes import documents as documents_api
from polynya.server.state import ServerState
from polynya.store.configuration import project_files

router = page_router()

#: Characters that a text area gives back as it got them, although they cannot be printed.
_KEPT: Final = frozenset("\n\t")


@router.get("/documents", dependencies=[allowed(Action.VIEW_DOCUMENTS)])
def documents(
    request: Request,
    *,
    folder: Annotated[str, Query(max_length=200)] = "",
    cursor: Cursor = None,
) -> HTMLResponse:
    """The files of the project."""
    found = documents_api.documents(request, folder=folder or None, cursor=cursor)
    known = {path.rpartition("/")[0] for path in project_files(ServerState.of(request).root)}
    return render(
        request,
        "documents.html",
        fragment="list",
        documents=found,
        folder=folder,
        folder_tabs=[(f"/console/documents?folder={one}", one) for one in sorted(known - {""})],
        cursor=cursor,
    )


@router.get("/new-document", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def new(request: Request, path: Annotated[str, Query(max_length=200)] = "") -> HTMLResponse:
    """A form for a document that the project does not have yet."""
    return _page(request, path, None, "")


@router.post("/new-document", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def check_new(request: Request, form: Posted) -> HTMLResponse:
    """What a new document would do."""
    path, text = last(form, "path"), lines_of(last(form, "content"))
    return reviewed(request, path, text, None)


@router.get("/documents/{path:path}", dependencies=[allowed(Action.VIEW_DOCUMENTS)])
def document(request: Request, path: str) -> HTMLResponse:
    """The text of one document."""
    found = ServerState.of(request).documents.read(path)
    return _page(request, path, found, found.content.decode("utf-8", "backslashreplace"))


@router.post("/documents/{path:path}", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def change(request: Request, path: str, form: Posted) -> Response:
    """Show what a change would do; make the change that was shown; or remove the document."""
    version, content, act = last(form, "etag") or None, last(form, "content"), last(form, "do")
    if act == "remove":
        documents_api.delete_document(request, path, version)
        return _to(request, "/console/documents")
    now = ServerState.of(request).documents.find(path)
    text = lines_of(content, now)
    if act != "save":
        return reviewed(request, path, text, version)
    try:
        documents_api.changed_document(request, path, encoded(text), version, write=True)
    except PolynyaError as error:
        return reviewed(request, path, text, version, error)
    then = last(form, "then")
    return _to(request, then if then.startswith("/console/") else _address(path))


def reviewed(
    request: Request,
    path: str,
    text: str,
    version: str | None,
    refused: PolynyaError | None = None,
    *,
    then: str = "",
) -> HTMLResponse:
    """What a change would do, with a button that makes it; both versions where another came first.

    `refused` is why it was not made, `then` the page that follows once it is.
    """
    facts: dict[str, Any] = {"diff": "", "conflict": None, "errors": [], "problem": None}
    errors: Sequence[PolynyaError] = [] if refused is None else [refused]
    try:
        content = encoded(text)
        try:
            found = documents_api.changed_document(request, path, content, version, write=False)
        except PolynyaError as error:
            now = ServerState.of(request).documents.find(path)
            if error.code != DOCUMENT_CHANGED.code or now is None:
                raise
            errors, version = [error], now.etag
            facts["conflict"] = now.content.decode("utf-8", "backslashreplace")
            found = documents_api.changed_document(request, path, content, version, write=False)
        facts |= {"diff": found.diff, "errors": found.errors}
    except PolynyaError as error:
        errors = [error]
    told = [
        one.as_dict()
        for error in errors
        for one in (error.errors if isinstance(error, ConfigErrors) else [error])
    ]
    return render(
        request,
        "document_change.html",
        fragment="change",
        status=status_of(errors[0]) if errors else 200,
        **facts | {"errors": told + [one for one in facts["errors"] if one not in told]},
        document=path,
        address=_address(path),
        text=text,
        version=version or "",
        then=then,
        can_save=bool(facts["diff"]) and not facts["errors"] and may_be_sent(text),
    )


def lines_of(text: str, now: ProjectDocument | None = None) -> str:
    """The text of a text area, whose lines browsers send with CR LF, with those of a document."""
    plain = text.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if now is not None and b"\r\n" in now.content else plain


def may_be_sent(text: str) -> bool:
    """Whether a page can show a text so that it comes back as it is."""
    return _first_hidden(text) is None


def encoded(text: str) -> bytes:
    """A text as the content of a document. Raises ConfigError POLYNYA-SRV-130 for a hidden sign."""
    hidden = _first_hidden(text)
    if hidden is None:
        return text.encode()
    sign = text[hidden]
    name = unicodedata.name(sign, "a control character")
    line = text.count("\n", 0, hidden) + 1
    raise TEXT_NOT_SHOWN(line=line, character=f"U+{ord(sign):04X} ({name})")


def _first_hidden(text: str) -> int | None:
    plain = text.replace("\r\n", "\n")
    if plain.isprintable():
        return None
    shown = (place for place, one in enumerate(plain) if not one.isprintable() and one not in _KEPT)
    return next(shown, None)


def _page(request: Request, path: str, found: ProjectDocument | None, text: str) -> HTMLResponse:
    return render(
        request,
        "document.html",
        document=path,
        address=_address(path),
        is_new=found is None,
        version="" if found is None else found.etag,
        text=text,
        editable=may_be_sent(text),
    )


def _address(path: str) -> str:
    return f"/console/documents/{quote(path)}"


def _to(request: Request, path: str) -> Response:
    if is_fragment(request):
        return Response(status_code=204, headers={"HX-Redirect": path})
    return Response(status_code=303, headers={"Location": path})
