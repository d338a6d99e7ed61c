"""The project's files as resources: read with `ETag`, changed with `If-Match`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from polynya.model.error_catalogue.server import DOCUMENT_CHANGED
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.documents import DocumentPlace
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.state import ServerState

router = api_router("documents")

#: `If-None-Match: *`: only where the document is new.
_NEW = "*"


class DocumentShown(BaseModel):
    """A document in a list."""

    path: str
    etag: str
    bytes: int


class DocumentChanged(BaseModel):
    """What a change did, or would do: a unified diff, and the errors that it makes."""

    path: str
    etag: str | None
    diff: str
    errors: list[dict[str, Any]]
    written: bool


DryRun = Annotated[bool, Query(description="show what the change would do, and write nothing")]
IfMatch = Annotated[str | None, Header(max_length=200)]
Place = Annotated[
    DocumentPlace, Query(description="the project folder, or its configuration bucket")
]
Folder = Annotated[
    str | None, Query(max_length=200, description="only documents of this folder, such as `tasks`")
]


@router.get("/documents", dependencies=[allowed(Action.VIEW_DOCUMENTS)])
def documents(
    request: Request,
    *,
    folder: Folder = None,
    place: Place = DocumentPlace.PROJECT,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> ListPage[DocumentShown]:
    """The documents of the project by path."""
    found = [
        DocumentShown(path=one.path, etag=one.etag, bytes=len(one.content))
        for one in ServerState.of(request).documents_at(place).all()
        if folder in (None, one.path.rpartition("/")[0])
    ]
    return page(found, lambda one: (one.path, one.path), limit, cursor)


@router.get(
    "/documents/{path:path}",
    dependencies=[allowed(Action.VIEW_DOCUMENTS)],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def document(request: Request, path: str, *, place: Place = DocumentPlace.PROJECT) -> Response:
    """The text of one document; its version is the header `ETag`."""
    found = ServerState.of(request).documents_at(place).read(path)
    return Response(found.content, 200, {"ETag": found.etag}, "text/plain; charset=utf-8")


@router.put(
    "/documents/{path:path}",
    dependencies=[allowed(Action.EDIT_DOCUMENTS)],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
)
async def put_document(
    request: Request,
    path: str,
    if_match: IfMatch = None,
    if_none_match: IfMatch = None,
    *,
    place: Place = DocumentPlace.PROJECT,
    dry_run: DryRun = False,
) -> DocumentChanged:
    """Replace a document, with its version as `If-Match`; or make one, with `If-None-Match: *`."""
    if (if_match is None) == (if_none_match != _NEW):
        raise DOCUMENT_CHANGED(path=shown(path))
    content = await request.body()
    return await run_in_threadpool(
        changed_document, request, path, content, if_match, write=not dry_run, place=place
    )


@router.delete("/documents/{path:path}", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def delete_document(
    request: Request,
    path: str,
    if_match: IfMatch = None,
    *,
    place: Place = DocumentPlace.PROJECT,
    dry_run: DryRun = False,
) -> DocumentChanged:
    """Remove a document, with its version as `If-Match`."""
    ServerState.of(request).documents_at(place).read(path)
    if if_match is None:
        raise DOCUMENT_CHANGED(path=shown(path))
    return changed_document(request, path, None, if_match, write=not dry_run, place=place)


def changed_document(
    request: Request,
    path: str,
    content: bytes | None,
    version: str | None,
    *,
    write: bool,
    place: DocumentPlace = DocumentPlace.PROJECT,
) -> DocumentChanged:
    """Change a document, or tell what that would do. Raises as `ProjectDocuments.change`."""
    documents = ServerState.of(request).documents_at(place)
    change = documents.change(path, content, version, write=write)
    return DocumentChanged(
        path=path,
        etag=change.after and change.after.etag,
        diff=change.diff,
        errors=[one.as_dict() for one in change.errors],
        written=write,
    )
