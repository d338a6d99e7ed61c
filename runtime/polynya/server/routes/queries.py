"""Questions in SQL over the live views, answered by the embedded engine within limits."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any, NoReturn

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from polynya.engine.answers import Answers, QueryEngine
from polynya.lake.read.query import split_statements
from polynya.lake.read.values import json_rows
from polynya.lake.warehouse.readers import reading
from polynya.model.error_catalogue.server import REQUEST_INVALID, SERVER_BUSY
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, caller
from polynya.server.access.views import guarded_find
from polynya.server.state import MOST_QUERIES, ServerState

router = APIRouter(tags=["queries"])


class QueryAsked(BaseModel):
    """A statement that reads, and the most rows of its answer."""

    model_config = ConfigDict(extra="forbid")

    sql: str = Field(max_length=100_000)
    limit: int = Field(default=1000, ge=1, le=10_000)


class QueryAnswered(BaseModel):
    """Rows as `polynya query --json` writes them; `more` where the limit cut the answer."""

    columns: dict[str, str]
    rows: list[dict[str, Any]]
    more: bool


@router.post("/queries", dependencies=[allowed(Action.QUERY_DATA)])
def query(request: Request, asked: QueryAsked) -> QueryAnswered:
    """Answer one statement over the newest commits; without Spark, so that it ends soon."""
    state = ServerState.of(request)
    person, document = caller(request)
    statements = split_statements(asked.sql)
    if len(statements) != 1:
        raise REQUEST_INVALID(reason=f"`sql` has {len(statements)} statements; give one")
    if not state.queries.acquire(blocking=False):
        raise SERVER_BUSY(most=MOST_QUERIES)
    try:
        project = state.project()
        guarded = partial(
            guarded_find, datasets=list(project.datasets()), person=person, document=document
        )
        answers = Answers(project, _no_spark, engine=QueryEngine.EMBEDDED, guarded=guarded)
        with reading(project, asked.sql):
            answer = answers.answer(statements[0], limit=asked.limit + 1)
            rows = (row for batch in answer.batches for row in json_rows(batch))
            found = list(itertools.islice(rows, asked.limit + 1))
    finally:
        state.queries.release()
    columns = {one.name: str(one.type) for one in answer.schema}
    return QueryAnswered(columns=columns, rows=found[: asked.limit], more=len(found) > asked.limit)


def _no_spark() -> NoReturn:
    raise AssertionError("the embedded engine never asks for Spark")
