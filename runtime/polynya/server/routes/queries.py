"""Questions in SQL over the live views, answered by the embedded engine within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

from fastapi import Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from polynya.model.config.access import AccessDocument
from polynya.model.error_catalogue.server import REQUEST_INVALID
from polynya.model.loader import LoadedProject
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router, caller
from polynya.server.access.roles import Person
from polynya.server.access.views import guarded_find
from polynya.server.running_queries import QueryLimits, RunningQuery
from polynya.server.state import ServerState

if TYPE_CHECKING:
    # Start-up time: DuckDB, sqlglot and Spark's names are loaded by the first question.
    from polynya.lake.read.query import Statement
    from polynya.lake.read.values import Answer

router = api_router("queries")

#: Of JSON: each value becomes an object of Python. Arrow and CSV may have more.
_MOST_JSON_ROWS: Final = 10_000
_MOST_ROWS: Final = 1_000_000
#: Characters of a statement.
MOST_TEXT: Final = 100_000
#: Where an answer in Arrow or CSV says whether the limit cut it.
_MORE: Final = "Polynya-More"


class AnswerForm(StrEnum):
    """Media types of an answer."""

    JSON = "application/json"
    ARROW = "application/vnd.apache.arrow.stream"
    CSV = "text/csv"


class QueryAsked(BaseModel):
    """A statement that reads, and the limits of its answer.

    `id` names the query while it runs, to cancel it by. `seconds` and `megabytes` end it with an
    error; `limit` cuts its rows, at most 10,000 in JSON and 1,000,000 in Arrow and CSV.
    """

    model_config = ConfigDict(extra="forbid")

    sql: str = Field(max_length=MOST_TEXT)
    limit: int = Field(default=1000, ge=1, le=_MOST_ROWS)
    seconds: float = Field(default=60, gt=0, le=300, allow_inf_nan=False)
    megabytes: int = Field(default=64, ge=1, le=256)
    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{8,64}$")


class QueryAnswered(BaseModel):
    """Rows as `polynya query --json` writes them; `more` where the limit cut the answer."""

    columns: dict[str, str]
    rows: list[dict[str, Any]]
    more: bool


class QueryShown(BaseModel):
    """A running query of the person who asks."""

    id: str
    sql: str
    since: datetime


class QueriesShown(BaseModel):
    """The running queries of the person who asks, the oldest first."""

    items: list[QueryShown]


class StatementAsked(BaseModel):
    """A statement that reads."""

    model_config = ConfigDict(extra="forbid")

    sql: str = Field(max_length=MOST_TEXT)


class QueryPlanned(BaseModel):
    """Which engine answers a statement: `spark` with the reason, else what is read of which view.

    The server answers what the `embedded` engine does; `polynya query` answers all.
    """

    engine: Literal["embedded", "spark"]
    reason: str | None
    views: dict[str, list[str]]


_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}


@router.post(
    "/queries",
    dependencies=[allowed(Action.QUERY_DATA)],
    response_model=QueryAnswered,
    responses={200: {"content": {AnswerForm.ARROW: _BINARY, AnswerForm.CSV: {
        "schema": {"type": "string"}}}}},
)  # fmt: skip
async def query(
    request: Request,
    asked: QueryAsked,
    accept: Annotated[str, Header(max_length=1000)] = "*/*",
) -> Response:
    """Answer one statement over the newest commits; without Spark, so that it ends soon.

    `Accept` chooses JSON, CSV or a stream of Arrow. A client that closes its connection cancels.
    """
    form = _form(accept)
    with _begun(request, asked) as (running, question):
        return await _unless_closed(request, running, partial(question.response, running, form))


async def _unless_closed(
    request: Request, running: RunningQuery, work: Callable[[], Response]
) -> Response:
    """What a query gives; a connection that is closed meanwhile cancels it."""
    answering = asyncio.ensure_future(run_in_threadpool(work))
    closing = asyncio.ensure_future(_closed(request))
    try:
        await asyncio.wait({answering, closing}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            running.cancel()
        return await answering
    finally:
        if not answering.done():
            # The server ends.
            running.cancel()
        closing.cancel()
        with suppress(asyncio.CancelledError):
            await closing


async def _closed(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def answered(request: Request, asked: QueryAsked) -> QueryAnswered:
    """The rows of a statement for routes that show rows; it keeps a thread until it ends."""
    with _begun(request, asked) as (running, question):
        return question.rows(running)


def exported(request: Request, asked: QueryAsked, form: AnswerForm) -> Response:
    """The answer of a statement in a form; it keeps a thread until it ends."""
    with _begun(request, asked) as (running, question):
        return question.response(running, form)


@contextmanager
def _begun(request: Request, asked: QueryAsked) -> Iterator[tuple[RunningQuery, _Question]]:
    state = ServerState.of(request)
    person, document = caller(request)
    question = _Question(state, _statement(asked.sql), person, document, asked.limit)
    limits = QueryLimits(asked.seconds, asked.megabytes)
    with state.queries.running(
        person.name, asked.sql, limits, name=asked.id, is_shared=document is not None
    ) as running:
        yield running, question


@dataclass(frozen=True, slots=True)
class _Question:
    """A statement of a person; each method runs it once."""

    state: ServerState
    statement: Statement
    person: Person
    document: AccessDocument | None
    limit: int

    def rows(self, running: RunningQuery) -> QueryAnswered:
        """Its rows as values of JSON."""
        from polynya.lake.read import values

        with running.stop.running():
            cut, more = self._answer(min(self.limit, _MOST_JSON_ROWS))
            columns = {one.name: str(one.type) for one in cut.schema}
            found = list(chain.from_iterable(map(values.json_rows, cut.batches)))
        return QueryAnswered(columns=columns, rows=found, more=more)

    def response(self, running: RunningQuery, form: AnswerForm) -> Response:
        """Its rows as an answer in a form."""
        if form is AnswerForm.JSON:
            return Response(self.rows(running).model_dump_json(), media_type=form)
        from polynya.lake.read import values

        with running.stop.running():
            cut, more = self._answer(self.limit)
            parts = values.arrow_parts if form is AnswerForm.ARROW else values.csv_parts
            content = b"".join(parts(cut))
        return Response(content, 200, {_MORE: "true" if more else "false"}, media_type=form)

    def _answer(self, most: int) -> tuple[Answer, bool]:
        from polynya.engine.answers import Answers, QueryEngine
        from polynya.lake.read import values
        from polynya.lake.warehouse.readers import reading

        project = self.state.project()
        guarded = _guarded(project, self.person, self.document)
        answers = Answers(project, _no_spark, engine=QueryEngine.EMBEDDED, guarded=guarded)
        with reading(project, self.statement.text):
            answer = answers.answer(self.statement, limit=most + 1)
            batches, more = _cut(answer.batches, most)
        return values.Answer(answer.schema, iter(batches)), more


def _cut(batches: Iterator[Any], most: int) -> tuple[list[Any], bool]:
    """The first rows of some batches, and whether there are more."""
    found: list[Any] = []
    left = most
    for batch in batches:
        if batch.num_rows > left:
            return [*found, batch.slice(0, left)], True
        found.append(batch)
        left -= batch.num_rows
    return found, False


@router.post("/queries/explain", dependencies=[allowed(Action.QUERY_DATA)])
def explain(request: Request, asked: StatementAsked) -> QueryPlanned:
    """Tell which engine answers a statement, why, and which columns of which views it reads."""
    from polynya.engine.answers import plan_embedded
    from polynya.lake.read.query import refuse_writing
    from polynya.query.translate import NotEmbeddedError

    project = ServerState.of(request).project()
    statement = _statement(asked.sql)
    refuse_writing(statement)
    try:
        views = plan_embedded(project, statement.text, guarded=_guarded(project, *caller(request)))
    except NotEmbeddedError as error:
        return QueryPlanned(engine="spark", reason=str(error), views={})
    return QueryPlanned(engine="embedded", reason=None, views=views)


@router.get("/queries", dependencies=[allowed(Action.QUERY_DATA)])
async def queries(request: Request) -> QueriesShown:
    """The running queries of the person who asks."""
    person, _ = caller(request)
    found = ServerState.of(request).queries.of(person.name)
    return QueriesShown(items=[QueryShown(id=o.id, sql=o.sql, since=o.since) for o in found])


@router.delete("/queries/{name}", dependencies=[allowed(Action.QUERY_DATA)], status_code=204)
async def cancel_query(request: Request, name: str) -> None:
    """Cancel a running query of the person who asks: its own request is answered with an error."""
    person, _ = caller(request)
    ServerState.of(request).queries.cancel(name, person.name)


def _form(accept: str) -> AnswerForm:
    """The media type of an `Accept` header, the best that there is."""
    wanted: list[tuple[float, str]] = []
    for one in accept.split(","):
        name, *parameters = (part.strip().lower() for part in one.split(";"))
        given = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        with suppress(ValueError):
            wanted.append((float(given), name))
    for weight, name in sorted(wanted, key=lambda pair: -pair[0]):
        for form in AnswerForm:
            if weight > 0 and name in {form, "*/*", f"{form.partition('/')[0]}/*"}:
                return form
    names = ", ".join(AnswerForm)
    raise REQUEST_INVALID(reason=f"`Accept` names none of {names}")


def _statement(sql: str) -> Statement:
    from polynya.lake.read.query import split_statements

    statements = split_statements(sql)
    if len(statements) != 1:
        raise REQUEST_INVALID(reason=f"`sql` has {len(statements)} statements; give one")
    return statements[0]


def _guarded(project: LoadedProject, person: Person, document: AccessDocument | None) -> Any:
    return partial(
        guarded_find, datasets=list(project.datasets()), person=person, document=document
    )


def _no_spark() -> NoReturn:
    raise AssertionError("the embedded engine never asks for Spark")
