"""The page of queries: SQL over the live views, with completion, export and saved queries."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from time import perf_counter
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse

from polynya.model.errors import PolynyaError
from polynya.model.project_derived import SAVED_FOLDER
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.documents import lines_of, reviewed
from polynya.server.console.forms import Posted, last
from polynya.server.console.html import may, render
from polynya.server.console.page import SlowPage, page_router
from polynya.server.problems import status_of
from polynya.server.routes import documents as documents_api
from polynya.server.routes import queries as queries_api
from polynya.server.routes.queries import (
    MOST_TEXT,
    AnswerForm,
    QueryAnswered,
    QueryAsked,
    StatementAsked,
)
from polynya.server.routes.views import readable_views
from polynya.server.state import ServerState

router = page_router(SlowPage)

#: Rows that a person can ask for, the first by default.
_LIMITS: Final = (100, 1000, 10_000)
#: A longer text does not stand in the address of its page.
_MOST_IN_ADDRESS: Final = 4000
#: Views that the list beside the text shows, and words that are offered while a person types.
_MOST_VIEWS: Final = 40
_MOST_WORDS: Final = 8
_WORD: Final = re.compile(r"[\w.]*\Z")

#: The columns of views, by `schema.view`.
Views = Mapping[str, Sequence[str]]


class ExportFormat(StrEnum):
    """How rows leave the page."""

    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


_FORMS: Final = {
    ExportFormat.CSV: AnswerForm.CSV,
    ExportFormat.JSON: AnswerForm.JSON,
    ExportFormat.ARROW: AnswerForm.ARROW,
}


@router.get("/query", dependencies=[allowed(Action.QUERY_DATA)])
def query(
    request: Request,
    *,
    sql: Annotated[str, Query(max_length=_MOST_IN_ADDRESS)] = "",
    saved: Annotated[str, Query(max_length=200)] = "",
    limit: Annotated[int, Query(ge=1, le=_LIMITS[-1])] = _LIMITS[0],
) -> HTMLResponse:
    """A statement and its answer; the address has both."""
    text = sql
    if saved:
        found = documents_api.document(request, f"{SAVED_FOLDER}/{saved}")
        text = bytes(found.body).decode("utf-8", "backslashreplace")
    return _page(request, text, limit, saved=saved)


@router.post("/query", dependencies=[allowed(Action.QUERY_DATA)])
def answer(request: Request, form: Posted) -> HTMLResponse:
    """The answer of a statement of any length."""
    return _page(request, lines_of(last(form, "sql")), _limit(last(form, "limit")), pushed=True)


@router.get("/query/export", dependencies=[allowed(Action.QUERY_DATA)], response_class=Response)
def export(
    request: Request,
    sql: Annotated[str, Query(max_length=_MOST_IN_ADDRESS)],
    limit: Annotated[int, Query(ge=1, le=_LIMITS[-1])],
    form: ExportFormat,
) -> Response:
    """The rows of a statement as a file."""
    answer = queries_api.exported(request, QueryAsked(sql=sql, limit=limit), _FORMS[form])
    answer.headers["Content-Disposition"] = f'attachment; filename="rows.{form.value}"'
    return answer


@router.post("/query/plan", dependencies=[allowed(Action.QUERY_DATA)])
def plan(request: Request, form: Posted) -> HTMLResponse:
    """Which engine answers a statement, why, and what it reads."""
    sql = lines_of(last(form, "sql"))[:MOST_TEXT]
    facts: dict[str, Any] = {"plan": None, "error": None}
    status = 200
    try:
        facts["plan"] = queries_api.explain(request, StatementAsked(sql=sql))
    except PolynyaError as error:
        facts["error"], status = error.as_dict(), status_of(error)
    command = shlex.join(["polynya", "query", sql])
    return render(
        request, "query_plan.html", fragment="plan", status=status, command=command, **facts
    )


@router.post("/query/words", dependencies=[allowed(Action.QUERY_DATA)])
def words(request: Request, form: Posted) -> HTMLResponse:
    """Views and columns that can follow what stands before the cursor."""
    sql, at = lines_of(last(form, "sql"))[:MOST_TEXT], last(form, "at")
    place = int(at) if at.isdecimal() and len(at) < 8 else len(sql)
    found = completions(sql, place, _views(request))
    return render(request, "query_words.html", fragment="words", words=found)


@router.get("/query/views", dependencies=[allowed(Action.QUERY_DATA)])
def views(request: Request, find: Annotated[str, Query(max_length=300)] = "") -> HTMLResponse:
    """The views that the person may read whose names have a text, with their columns."""
    found: dict[str, list[str]] = {}
    known = _views(request)
    for name in known:
        if find.lower() in name.lower():
            found.setdefault(name.partition("__")[0], []).append(name)
    shown = [(name, of, known[of[0]]) for name, of in list(found.items())[:_MOST_VIEWS]]
    more = len(found) - len(shown)
    return render(request, "query_views.html", fragment="views", datasets=shown, more=more)


@router.post("/query/save", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def save(request: Request, form: Posted) -> HTMLResponse:
    """What saving a statement as a file of the project would change."""
    name, sql = last(form, "name").strip(), lines_of(last(form, "sql")).rstrip()
    file = name if name.endswith(".sql") else f"{name}.sql"
    path = f"{SAVED_FOLDER}/{file}"
    now = ServerState.of(request).documents.find(path)
    then = f"/console/query?{urlencode({'saved': file})}"
    return reviewed(request, path, f"{sql}\n", None if now is None else now.etag, then=then)


def completions(sql: str, at: int, views: Views) -> list[tuple[str, str, int]]:
    """Words that can follow a text up to a place: the word, what it is, and what it replaces.

    The last is the number of characters before the place. Columns come from the views that the
    whole text names, and stand before views.
    """
    (typed,) = _WORD.findall(sql[:at])[:1]
    start = typed.lower()
    if not start:
        return []
    named = set(re.findall(r"[\w.]+", sql.lower()))
    after_dot = start.rpartition(".")[2]
    columns = {
        column: name
        for name, of_view in views.items()
        if name.lower() in named
        for column in of_view
        if column.lower().startswith(after_dot)
    }
    found = [(column, f"column of {name}", len(after_dot)) for column, name in columns.items()]
    found += [
        (name, "view", len(start))
        for name in views
        if name.lower().startswith(start) or name.lower().rpartition(".")[2].startswith(start)
    ]
    return [one for one in found if one[0].lower() != start][:_MOST_WORDS]


def cells(answered: QueryAnswered) -> list[list[str | None]]:
    """The rows of an answer as texts, None for NULL."""
    return [[_cell(row.get(name)) for name in answered.columns] for row in answered.rows]


def _cell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _page(
    request: Request, sql: str, limit: int, *, saved: str = "", pushed: bool = False
) -> HTMLResponse:
    facts: dict[str, Any] = {"answer": None, "error": None, "seconds": 0.0}
    status = 200
    if sql.strip():
        begun = perf_counter()
        try:
            asked = QueryAsked(sql=sql[:MOST_TEXT], limit=limit)
            facts["answer"] = queries_api.answered(request, asked)
        except PolynyaError as error:
            facts["error"], status = error.as_dict(), status_of(error)
        facts["seconds"] = perf_counter() - begun
    answered = facts["answer"]
    short = len(sql) <= _MOST_IN_ADDRESS
    address = f"/console/query?{urlencode({'sql': sql, 'limit': limit})}" if short else None
    exports = [
        (one, f"/console/query/export?{urlencode({'sql': sql, 'limit': limit, 'form': one.value})}")
        for one in ExportFormat
        if short
    ]
    of_file = ["--file", f"{SAVED_FOLDER}/{saved}"] if saved else [sql]
    return render(
        request,
        "query.html",
        fragment="answer",
        status=status,
        headers={"HX-Push-Url": address} if pushed and address else None,
        sql=sql,
        saved=saved,
        limit=limit,
        limits=_LIMITS,
        rows=[] if answered is None else cells(answered),
        command=shlex.join(["polynya", "query", *of_file, "--limit", str(limit)]),
        queries=_saved(request),
        exports=exports,
        **facts,
    )


def _saved(request: Request) -> list[str]:
    """The names of the saved queries."""
    if not may(request, Action.VIEW_DOCUMENTS):
        return []
    found = documents_api.documents(request, folder=SAVED_FOLDER, limit=500)
    return [one.path.rpartition("/")[2] for one in found.items]


def _views(request: Request) -> Views:
    """The columns of the views that a person may read."""
    return {one.name: tuple(one.columns) for one in readable_views(request)}


def _limit(text: str) -> int:
    """The rows that a form asks for."""
    return min(int(text), _LIMITS[-1]) if re.fullmatch(r"[1-9][0-9]{0,5}", text) else _LIMITS[0]
