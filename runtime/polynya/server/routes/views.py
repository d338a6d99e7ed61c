"""The views that a person may query, with their columns and what is masked for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel, Field

from polynya.model.config.access import ViewKind
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router, caller
from polynya.server.access.views import may_read
from polynya.server.overview import Overview
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.state import ServerState

router = api_router("views")


@dataclass(frozen=True, slots=True)
class KnownView:
    """A view `schema.view` of a dataset, with the columns of that."""

    name: str
    kind: ViewKind
    dataset: str
    task: str
    columns: Mapping[str, str]


class ViewShown(BaseModel):
    """A view, as statements name it."""

    name: str
    kind: ViewKind
    dataset: str
    task: str
    columns: dict[str, str] = Field(
        description="columns of the dataset with their types, without those of the engine; none "
        "of a table that others maintain, which is read when a statement names it"
    )
    masked: list[str] = Field(description="columns that are NULL for you")


@router.get("/views", dependencies=[allowed(Action.QUERY_DATA)])
def views(
    request: Request,
    *,
    name: Annotated[str, Query(max_length=300, description="a glob of names")] = "*",
    limit: Limit = 100,
    cursor: Cursor = None,
) -> ListPage[ViewShown]:
    """The views that you may query, by name, as of the newest look at the tables."""
    matches = re.compile(translate(name)).match
    known = [one for one in readable_views(request) if matches(one.name)]
    part = page(known, lambda one: (one.name, one.name), limit, cursor)
    person, document = caller(request)
    items = []
    for one in part.items:
        readable = may_read(person, one.dataset, document, one.kind)
        items.append(
            ViewShown(
                name=one.name,
                kind=one.kind,
                dataset=one.dataset,
                task=one.task,
                columns=dict(one.columns),
                masked=[column for column in one.columns if readable.masked(column)],
            )
        )
    return ListPage(items=items, total=part.total, next=part.next)


def readable_views(request: Request) -> Sequence[KnownView]:
    """The views that the person of a request may read, by name."""
    person, document = caller(request)
    overview = ServerState.of(request).overview.newest()
    known = overview.once("views", lambda: _all_views(overview))
    datasets = {one.dataset for one in known}
    kinds = {name: may_read(person, name, document).kinds for name in datasets}
    return [one for one in known if one.kind in kinds[one.dataset]]


def _all_views(overview: Overview) -> list[KnownView]:
    found = [
        KnownView(name, kind, one.name, one.task, one.columns)
        for one in overview.datasets.values()
        for kind, name in one.views.items()
    ]
    for task in () if overview.project is None else overview.project.registered:
        names = [one.relations.current for one in task.datasets()]
        found += [KnownView(name, "current", name, task.name, {}) for name in names]
    return sorted(found, key=lambda one: one.name)
