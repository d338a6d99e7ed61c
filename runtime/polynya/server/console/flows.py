"""The editor of flows: a form for each step, with the columns and some rows of its result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, get_args
from urllib.parse import quote

from fastapi import Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ValidationError

from polynya.model.config.flow import MAX_STEPS, FlowStep
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE, REQUEST_INVALID
from polynya.model.error_catalogue.server_console import FLOW_NOT_EDITED
from polynya.model.errors import PolynyaError
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.documents import reviewed
from polynya.server.console.flow_text import flow_lines, new_transform, with_flow
from polynya.server.console.forms import FormField, Posted, fields, last, texts_of, values
from polynya.server.console.html import render
from polynya.server.console.page import SlowPage, page_router
from polynya.server.console.steps import MOST_ROWS, StepNumber, rows_page
from polynya.server.routes import transforms as transforms_api
from polynya.server.routes.transforms import FlowDraft, FlowStepChecked, FlowStepRows
from polynya.server.state import ServerState

router = page_router(SlowPage)

_STEP_FIELD: Final = re.compile(r"s([0-9]{1,3})\.(.{1,200})", re.ASCII)
#: The field of a step that says which processor it is.
_PROCESSOR: Final = "processor"
#: The settings that stand first and last in the form of a step.
_FIRST, _LAST = ("input",), ("as",)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


#: The settings of each processor.
_PROCESSORS: Final[Mapping[str, type[BaseModel]]] = {
    name: next(_models(info.annotation)) for name, info in FlowStep.model_fields.items()
}


@dataclass(frozen=True, slots=True)
class DraftStep:
    """A step as the form has it: its processor, and the texts of its fields."""

    processor: str
    given: Mapping[str, Sequence[str]]

    @property
    def settings(self) -> dict[str, Any]:
        """The step as a file has it, without settings that are as by default.

        Raises ConfigError for a text that is not YAML.
        """
        model = _PROCESSORS[self.processor]
        found = values(model, self.given)
        for attribute, info in model.model_fields.items():
            name = info.alias or attribute
            if not info.is_required() and found.get(name) == info.get_default():
                found.pop(name, None)
        return {self.processor: found}


@dataclass(frozen=True, slots=True)
class FlowForm:
    """A flow that is being written.

    Attributes:
        task, dataset: their names; `dataset` as the file of the task has it.
        reads: the tasks whose tables it reads.
        path, etag: the document that holds it, and the version that the form began with; a new
            flow has no version.
        keys: of a new table.
    """

    task: str
    dataset: str
    reads: tuple[str, ...]
    path: str
    etag: str
    steps: tuple[DraftStep, ...]
    keys: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether the flow makes a file."""
        return not self.etag


@dataclass(frozen=True, slots=True)
class FlowStepForm:
    """A step as the page shows it."""

    number: int
    processor: str
    summary: str
    fields: tuple[FormField, ...]
    columns: Mapping[str, str | None] | None
    keys: Sequence[Sequence[str]]
    errors: Sequence[Mapping[str, Any]]


@router.get("/new-flow", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def new_flow(
    request: Request,
    reads: Annotated[list[str] | None, Query(alias="from", max_length=100)] = None,
) -> HTMLResponse:
    """A flow that makes a transform of its own."""
    return _page(request, FlowForm("", "", tuple(reads or ()), "", "", ()))


@router.post("/new-flow", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def changed_new_flow(request: Request, form: Posted) -> HTMLResponse:
    """A new flow with a step more, less, or in another place."""
    return _page(request, _changed(_of_form(form), last(form, "do")))


@router.get("/transforms/{task}/{dataset}/edit", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def edit_flow(request: Request, task: str, dataset: str) -> HTMLResponse:
    """The flow of a table, as its file has it."""
    state = ServerState.of(request)
    project = state.project()
    found, name = transforms_api.task_and_name(project, task, dataset)
    query = found.query_of(name)
    if not query.flow or task in project.templates:
        reason = "it comes from a template" if query.flow else "the query is no flow"
        raise FLOW_NOT_EDITED(where=project.files[task], dataset=shown(dataset), reason=reason)
    document = state.documents.read(project.files[task])
    steps = []
    for step in query.flow:
        settings = step.settings.model_dump(mode="json", exclude_unset=True, by_alias=True)
        steps.append(DraftStep(step.processor, texts_of(_PROCESSORS[step.processor], settings)))
    reads = (*(one.name for one in found.reads), *(one.name for one in found.registered))
    form = FlowForm(task, name, reads, document.path, document.etag, tuple(steps))
    return _page(request, form, title=dataset)


@router.post("/transforms/{task}/{dataset}/edit", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def changed_flow(request: Request, task: str, dataset: str, form: Posted) -> HTMLResponse:
    """A flow with a step more, less, or in another place."""
    found = _changed(_of_form(form), last(form, "do"))
    return _page(request, replace(found, task=task), title=dataset)


@router.post("/flow-change", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def review_flow(request: Request, form: Posted) -> HTMLResponse:
    """What a flow would change in the file of its task."""
    flow = _of_form(form)
    steps = [one.settings for one in flow.steps]
    if not steps:
        raise REQUEST_INVALID(reason="a flow has at least one step")
    if flow.is_new:
        path = f"tasks/{flow.task}.yml"
        head = new_transform(flow.task, flow.reads, flow.dataset, flow.keys)
        return reviewed(request, path, head + "\n".join([*flow_lines(steps, 6), ""]), None)
    document = ServerState.of(request).documents.find(flow.path)
    if document is None:
        raise NO_SUCH_RESOURCE(what=f"document {shown(flow.path)}")
    for number, one in enumerate(steps):
        try:
            FlowStep.model_validate(one)
        except ValidationError as error:
            reason = f"step {number + 1}: {error.errors()[0]['msg']}"
            raise REQUEST_INVALID(reason=reason) from error
    text = with_flow(document.content.decode(), flow.path, flow.dataset, steps)
    return reviewed(request, flow.path, text, flow.etag)


@router.post("/flow-rows/{step}", dependencies=[allowed(Action.QUERY_DATA)])
def rows(request: Request, step: StepNumber, form: Posted) -> HTMLResponse:
    """Some rows of a step, as far as the viewer may read its tables."""
    flow = _of_form(form)

    def ask() -> FlowStepRows:
        draft = _draft(flow, [one.settings for one in flow.steps])
        return transforms_api.preview_flow(request, draft, step, MOST_ROWS)

    return rows_page(request, step, ask)


def _page(request: Request, form: FlowForm, *, title: str = "") -> HTMLResponse:
    error, tables = None, {}
    checked: list[FlowStepChecked | None] = [None] * len(form.steps)
    broken: dict[int, Mapping[str, Any]] = {}
    settings: list[dict[str, Any]] = []
    for number, step in enumerate(form.steps):
        try:
            settings.append(step.settings)
        except PolynyaError as wrong:
            broken[number] = wrong.as_dict()
            settings.append({step.processor: {}})
    try:
        if form.reads and form.steps:
            found = transforms_api.check_flow(request, _draft(form, settings))
            tables, checked = found.tables, list(found.steps)
    except PolynyaError as wrong:
        error = wrong.as_dict()
    shown_steps = [
        _step_form(number, step, checked[number], broken.get(number))
        for number, step in enumerate(form.steps)
    ]
    named = [text for step in form.steps for text in step.given.get("as", ()) if text]
    project = ServerState.of(request).known_project()
    return render(
        request,
        "flow.html",
        fragment="flow",
        form=form,
        title=title,
        action=_address(form, title),
        steps=shown_steps,
        tables=tables,
        names=[*named, *tables],
        processors=[(name, _summary(name)) for name in _PROCESSORS],
        tasks=sorted(
            {one.name for one in project.tasks} | {one.name for one in project.registered}
        ),
        error=error,
        most=MAX_STEPS,
    )


def _address(form: FlowForm, dataset: str) -> str:
    if form.is_new:
        return "/console/new-flow"
    return f"/console/transforms/{quote(form.task)}/{quote(dataset)}/edit"


def _step_form(
    number: int, step: DraftStep, checked: FlowStepChecked | None, broken: Mapping[str, Any] | None
) -> FlowStepForm:
    given = fields(_PROCESSORS[step.processor], step.given)
    order = {**dict.fromkeys(_FIRST, 0), **dict.fromkeys(_LAST, 2)}
    errors: list[Mapping[str, Any]] = [] if broken is None else [broken]
    if broken is None and checked is not None:
        errors += checked.errors
    return FlowStepForm(
        number=number,
        processor=step.processor,
        summary=_summary(step.processor),
        fields=tuple(sorted(given, key=lambda one: order.get(one.name, 1))),
        columns=None if checked is None else checked.columns,
        keys=checked.keys if checked is not None else (),
        errors=errors,
    )


def _summary(processor: str) -> str:
    """What a processor does, in a sentence."""
    return (FlowStep.model_fields[processor].description or "").partition(". ")[0]


def _draft(form: FlowForm, settings: list[dict[str, Any]]) -> FlowDraft:
    if not form.reads or not settings:
        raise REQUEST_INVALID(reason="a flow reads a task and has a step")
    return FlowDraft.model_validate({"from": form.reads, "steps": settings})


def _of_form(form: Mapping[str, Sequence[str]]) -> FlowForm:
    """The flow of what a form sends. Raises ConfigError POLYNYA-SRV-002."""
    given: dict[int, dict[str, Sequence[str]]] = {}
    for name, texts in form.items():
        if (found := _STEP_FIELD.fullmatch(name)) is not None:
            lines = [text.replace("\r\n", "\n") for text in texts]
            given.setdefault(int(found[1]), {})[found[2]] = lines
    steps = []
    for number in sorted(given):
        (processor,) = given[number].pop(_PROCESSOR, ("",))[-1:]
        if processor not in _PROCESSORS:
            raise REQUEST_INVALID(reason=f"{shown(processor)} is not a processor")
        steps.append(DraftStep(processor, given[number]))
    if len(steps) > MAX_STEPS:
        raise REQUEST_INVALID(reason=f"a flow has at most {MAX_STEPS} steps")
    words = last(form, "keys").replace(",", " ").split()
    reads = tuple(one for one in form.get("from", ()) if one)
    return FlowForm(
        task=last(form, "task").strip(),
        dataset=last(form, "dataset").strip(),
        reads=reads[:100],
        path=last(form, "path"),
        etag=last(form, "etag"),
        steps=tuple(steps),
        keys=tuple(words),
    )


def _changed(form: FlowForm, act: str) -> FlowForm:
    """The form after a button such as `add:filter`, `remove:2`, `up:2` or `down:2`."""
    verb, _, what = act.partition(":")
    steps = list(form.steps)
    if verb == "add" and what in _PROCESSORS:
        return replace(form, steps=(*steps, DraftStep(what, {})))
    if not what.isdecimal() or len(what) > 3 or int(what) >= len(steps):
        return form
    place = int(what)
    step = steps.pop(place)
    if verb == "up":
        steps.insert(max(0, place - 1), step)
    elif verb == "down":
        steps.insert(place + 1, step)
    elif verb != "remove":
        steps.insert(place, step)
    return replace(form, steps=tuple(steps))
