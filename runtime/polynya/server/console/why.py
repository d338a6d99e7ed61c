"""The page that says why a row is so: back through queries and events to what landed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from polynya.model.errors import PolynyaError
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.html import render
from polynya.server.console.page import SlowPage, is_answer, page_router
from polynya.server.console.record import (
    ClockTime,
    address,
    as_text,
    asked,
    given_keys,
    title_of,
)
from polynya.server.problems import status_of
from polynya.server.routes import why as why_api
from polynya.server.routes.why import WhyInputShown, WhyRowShown

router = page_router(SlowPage)

#: Columns of a row that stand open; the others are below them.
_OPEN: Final = 8
#: Characters of a value beside others.
_LONGEST: Final = 80


@dataclass(frozen=True, slots=True)
class WhyColumn:
    """A value of a row: its text, None for NULL; and what the column is made of."""

    name: str
    text: str | None
    masked: bool
    made_of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WhyStep:
    """A row on the way back, as the page tells of it.

    Attributes:
        number: of the step, from 1; the row in question is the first.
        depth: how many queries lie between this row and the row in question.
        inputs: what it was made of, each with the numbers of the steps of its rows.
        valid: of a version, from when to when it holds; the second is None where it still does.
        event: what happened to it in the source, as a word; None for a row of a query.
        history: the address of its record.
    """

    number: int
    depth: int
    row: WhyRowShown
    key: str
    columns: tuple[WhyColumn, ...]
    inputs: tuple[tuple[WhyInputShown, tuple[int, ...]], ...]
    valid: tuple[ClockTime | None, ClockTime | None]
    event: str | None
    source: ClockTime | None
    arrived: ClockTime | None
    history: str

    @property
    def open_columns(self) -> tuple[WhyColumn, ...]:
        """The columns that stand open."""
        return self.columns[:_OPEN]

    @property
    def more_columns(self) -> tuple[WhyColumn, ...]:
        """The others."""
        return self.columns[_OPEN:]


@router.get("/why", dependencies=[allowed(Action.QUERY_DATA)])
def why(
    request: Request,
    *,
    dataset: Annotated[str, Query(max_length=500)] = "",
    key: Annotated[list[str] | None, Query(max_length=50)] = None,
) -> HTMLResponse:
    """What made a row."""
    given = given_keys(request, key)
    found, error, status = None, None, 200
    if dataset and given:
        try:
            found = why_api.why(request, dataset, given)
        except PolynyaError as refused:
            if not is_answer(refused):
                raise
            error, status = refused.as_dict(), status_of(refused)
    told = steps(found.row) if found is not None and found.row is not None else []
    nodes, edges = drawn(told)
    return render(
        request,
        "why.html",
        fragment="steps",
        status=status,
        **asked(request, dataset, given),
        error=error,
        found=found,
        steps=told,
        nodes=nodes,
        edges=edges,
        record_address=address("record", dataset, given),
    )


def steps(row: WhyRowShown) -> list[WhyStep]:
    """The rows of an answer in the order in which a person reads them: each before its inputs."""
    return list(_steps(row, 0, iter(range(1, 1_000_000))))


def _steps(row: WhyRowShown, depth: int, numbers: Iterator[int]) -> Iterator[WhyStep]:
    number = next(numbers)
    below: list[WhyStep] = []
    inputs = []
    for one in row.inputs:
        of_input = []
        for made in one.rows:
            found = list(_steps(made, depth + 1, numbers))
            of_input.append(found[0].number)
            below += found
        inputs.append((one, tuple(of_input)))
    entry = row.entry
    yield WhyStep(
        number,
        depth,
        row,
        _key(row.key),
        tuple(_columns(row)),
        tuple(inputs),
        (ClockTime.of(row.valid_from), ClockTime.of(row.valid_to)),
        None if entry is None else title_of(entry.kind),
        ClockTime.of(None if entry is None else entry.source_time),
        ClockTime.of(None if entry is None else entry.copied_at or entry.applied_at),
        address("record", row.dataset, [f"{name}={as_text(v)}" for name, v in row.key.items()]),
    )
    yield from below


def drawn(told: Sequence[WhyStep]) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """The way of a row as a graph, from what landed to the row in question."""
    nodes: list[dict[str, Any]] = []
    edges = []
    for one in told:
        begin, _ = one.valid
        says = one.key if begin is None else f"{one.key} from {begin.date} {begin.time[:8]}"
        node = {"id": str(one.number), "title": one.row.dataset, "says": says}
        nodes.append({**node, "path": f"#step-{one.number}"})
        if one.number == 1:
            nodes[-1]["word"] = "subject"
        edges += [
            {"from": str(number), "to": str(one.number)}
            for _, numbers in one.inputs
            for number in numbers
        ]
        landed = one.row.entry and one.row.entry.landed
        if landed:
            id_ = f"{one.number} landed"
            place = landed.message or landed.file.rpartition("/")[2]
            says = f"record {landed.number:,}, {(one.event or '').lower()}"
            nodes.append({"id": id_, "title": place, "says": says, "path": f"#step-{one.number}"})
            edges.append({"from": id_, "to": str(one.number)})
    return nodes, edges


def _columns(row: WhyRowShown) -> Iterator[WhyColumn]:
    for name, value in row.values.items():
        text = as_text(value)
        if text is not None and len(text) > _LONGEST:
            text = f"{text[:_LONGEST]}…"
        yield WhyColumn(name, text, name in row.masked, tuple(row.columns.get(name, ())))


def _key(key: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {as_text(value)}" for name, value in key.items())
