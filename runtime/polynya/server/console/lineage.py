"""The page of lineage: what a dataset or a column is made of, and what uses it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from polynya.model.errors import PolynyaError
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.html import render
from polynya.server.console.page import is_answer, page_router
from polynya.server.problems import status_of
from polynya.server.routes import lineage as lineage_api
from polynya.server.state import ServerState

router = page_router()

#: A graph with more nodes is shown as a table.
MOST_NODES: Final = 150
#: Names that the field of the subject offers.
_MOST_NAMES: Final = 500
#: Kinds of lineage that carry values, as OpenLineage spells them.
_CARRIES: Final = frozenset({"IDENTITY", "TRANSFORMATION", "AGGREGATION"})

Facts = Mapping[str, Any]


class LineageDirection(StrEnum):
    """Which side of a subject is shown."""

    BOTH = "both"
    UPSTREAM = "upstream"
    IMPACT = "impact"


@router.get("/lineage", dependencies=[allowed(Action.VIEW_LINEAGE)])
def lineage(
    request: Request,
    *,
    of: Annotated[str, Query(max_length=500)] = "",
    direction: LineageDirection = LineageDirection.BOTH,
    steps: Annotated[int, Query(ge=1, le=100)] = 1,
) -> HTMLResponse:
    """The neighbourhood of one subject as a graph."""
    datasets: dict[str, Facts] = {}
    error, status = None, 200
    sides = {LineageDirection.BOTH: (False, True), LineageDirection.IMPACT: (True,)}
    try:
        for impact in sides.get(direction, (False,)) if of else ():
            found = lineage_api.lineage(request, of, impact=impact, steps=steps)
            for one in found.datasets:
                datasets[one["name"]] = _joined(datasets.get(one["name"]), one)
    except PolynyaError as refused:
        if not is_answer(refused):
            raise
        error, status = refused.as_dict(), status_of(refused)
    subject = _subject(of, datasets)
    column = None if subject is None else _column(of, subject)
    nodes, edges = _columns(datasets.values()) if column else _datasets(datasets.values())
    shown = subject and (f"{subject['name']}.{column}" if column else subject["name"])
    nodes = [{**one, "word": "subject"} if one["id"] == shown else one for one in nodes]
    overview = ServerState.of(request).overview.newest()
    names = sorted(overview.datasets)
    flags = ["--impact"] if direction is LineageDirection.IMPACT else []
    return render(
        request,
        "lineage.html",
        fragment="graph",
        status=status,
        of=of,
        direction=direction,
        directions=list(LineageDirection),
        steps=steps,
        error=error,
        subject=subject,
        column=column,
        nodes=nodes,
        edges=edges,
        is_graph=len(nodes) <= MOST_NODES,
        names=names[:_MOST_NAMES],
        as_of=overview.at,
        command=shlex.join(["polynya", "lineage", of, *flags]),
        address=address,
    )


def address(of: str, **more: object) -> str:
    """The page of a subject."""
    return f"/console/lineage?{urlencode({'of': of, **more})}"


def _subject(of: str, datasets: Mapping[str, Facts]) -> Facts | None:
    """The dataset of a subject, which names it or one of its columns."""
    wanted = of.lower()
    found = [
        one
        for name, one in datasets.items()
        for known in (name.lower(), name.lower().rpartition(".")[2])
        if wanted == known or wanted.startswith(f"{known}.")
    ]
    return max(found, key=lambda one: len(one["name"]), default=None)


def _column(of: str, subject: Facts) -> str | None:
    """The column that a subject names."""
    names = [str(one["name"]) for one in subject["columns"]]
    return next((name for name in names if of.lower().endswith(f".{name.lower()}")), None)


def _joined(one: Facts | None, other: Facts) -> Facts:
    """The facts of a dataset that both directions lead to."""
    if one is None:
        return other
    known = {column["name"]: column for column in one["columns"]}
    columns = []
    for column in other["columns"]:
        before = known.pop(column["name"], column)
        more = before if len(before["inputs"]) > len(column["inputs"]) else column
        columns.append(more)
    rows = (
        one["rows"] if len(one["rows"]["inputs"]) > len(other["rows"]["inputs"]) else other["rows"]
    )
    reads = list(dict.fromkeys([*one["reads"], *other["reads"]]))
    return {**other, "columns": [*known.values(), *columns], "rows": rows, "reads": reads}


def _inputs(one: Facts) -> Iterator[Facts]:
    for made in (*one["columns"], one["rows"]):
        yield from made["inputs"]


def _datasets(datasets: Iterable[Facts]) -> tuple[list[Facts], list[Facts]]:
    """A node for each dataset, and an edge from each that it reads."""
    found = {one["name"]: one for one in datasets}
    nodes = [
        _node(name, name, f"{one['kind']}, {len(one['columns'])} columns")
        for name, one in found.items()
    ]
    edges = {
        (origin, name)
        for name, one in found.items()
        for origin in (*one["reads"], *(use["dataset"] for use in _inputs(one)))
        if origin in found and origin != name
    }
    return nodes, [{"from": origin, "to": name} for origin, name in sorted(edges)]


def _columns(datasets: Iterable[Facts]) -> tuple[list[Facts], list[Facts]]:
    """A node for each column, and one for the rows of a dataset where they depend on columns.

    Edges that carry no values, and only decide which rows there are, are `soft`.
    """
    nodes: dict[str, Facts] = {}
    edges: list[Facts] = []
    for one in datasets:
        name = one["name"]
        rows = f"{name} rows"
        for made in one["columns"]:
            id_ = f"{name}.{made['name']}"
            nodes[id_] = _node(id_, made["name"], name)
            edges += [_edge(use, id_) for use in made["inputs"]]
            if one["rows"]["inputs"]:
                edges.append({"from": rows, "to": id_, "soft": True})
        if one["rows"]["inputs"]:
            nodes[rows] = {**_node(name, f"rows of {name}", "which rows there are"), "id": rows}
            edges += [_edge(use, rows) for use in one["rows"]["inputs"]]
    kept = [edge for edge in edges if edge["from"] in nodes and edge["to"] in nodes]
    return list(nodes.values()), kept


def _node(of: str, title: str, says: str) -> Facts:
    return {"id": of, "title": title, "says": says, "path": address(of)}


def _edge(use: Facts, to: str) -> Facts:
    dataset, column = use["dataset"], use["column"]
    origin = f"{dataset} rows" if column is None else f"{dataset}.{column}"
    return {"from": origin, "to": to, "soft": _CARRIES.isdisjoint(use["kinds"])}
