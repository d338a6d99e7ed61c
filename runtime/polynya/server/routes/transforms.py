"""Transforms and marts as resources: their queries, how steps compute them, drafts of flows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from polynya.engine.inventory import tables_of
from polynya.lake.read import inspect
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.lake.table.state import CopyState
from polynya.model.config.derived import DerivedTask
from polynya.model.config.flow import MAX_STEPS, FlowStep
from polynya.model.config.task import resolved
from polynya.model.documents.yaml import MapNode, NodePath, ScalarNode, dotted
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE, REQUEST_INVALID
from polynya.model.errors import ConfigErrors, PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import quote_path, shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router, require
from polynya.server.health import HealthWord
from polynya.server.overview import Overview
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.routes.queries import MOST_TEXT, QueryAnswered, QueryAsked, answered
from polynya.server.state import ServerState

if TYPE_CHECKING:
    from polynya.derived.flow import CompiledFlow
    from polynya.derived.schema import DerivedInput

router = api_router("transforms")

#: Rows of a preview.
_MOST_ROWS: Final = 100
#: Seconds of each of its statements.
_SECONDS: Final = 60.0


class TransformShown(BaseModel):
    """A table that a query keeps. Seconds are those of its last step."""

    dataset: str
    task: str
    kind: str = Field(description="kind of the task: `transform` or `data_mart`")
    query: str = Field(description="`flow`, `sql` or `mart`: what the query is written as")
    incremental: str = Field(description="the setting: `auto`, `strict` or `full`")
    health: HealthWord
    rows: int | None
    last_step: str | None = Field(description="why the last step ran")
    last_seconds: float | None
    derived_at: str | None
    failed: int = Field(description="expectations that a committed result has failed")


class ExpectationShown(BaseModel):
    """What each result has to satisfy, and how often committed results did not."""

    name: str
    kind: str
    on_failure: str
    failed: int
    says: str | None
    at: str | None


class FlowStepShown(BaseModel):
    """A step of a flow: what it reads, its columns with types, and its own query.

    Of a query in SQL the steps are the parts that its `WITH` names (`with`), and the `SELECT` after
    them; types are not known then.
    """

    name: str
    processor: str
    reads: list[str]
    columns: dict[str, str | None]
    sql: str


class TransformDetails(TransformShown):
    """A table that a query keeps, with its query and how steps compute it."""

    file: str
    where: str = Field(description="`file:line:col` of the query")
    sql: str | None = Field(description="null while the query cannot be written")
    settings: list[dict[str, Any]] = Field(description="the flow as its file has it")
    steps: list[FlowStepShown]
    inputs: list[str]
    computed: str | None = Field(description="how steps are restricted to what changed")
    is_full: bool | None = Field(description="each step computes the whole query")
    whole_seconds: float | None = Field(description="of the last step that computed all")
    keyed_seconds: float | None = Field(description="of the last step of affected keys")
    keyed_share: float | None = Field(description="share of input rows that had changed in it")
    expectations: list[ExpectationShown]
    errors: list[dict[str, Any]]


class FlowDraft(BaseModel):
    """A flow that is being written, over the tables of some tasks."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    from_: list[str] = Field(alias="from", min_length=1, max_length=100)
    steps: list[dict[str, Any]] = Field(min_length=1, max_length=MAX_STEPS)


class FlowStepChecked(BaseModel):
    """A step of a draft: its columns, null where it or what it reads is wrong."""

    columns: dict[str, str | None] | None
    keys: list[list[str]]
    sql: str | None
    errors: list[dict[str, Any]]


class FlowChecked(BaseModel):
    """A draft of a flow: its tables with their columns, and its steps."""

    tables: dict[str, list[str]]
    steps: list[FlowStepChecked]


class FlowStepRows(QueryAnswered):
    """Some rows of a step, of how many, and the seconds until both were known."""

    total: int
    seconds: float


@router.get("/transforms", dependencies=[allowed(Action.VIEW_PROJECT)])
async def transforms(
    request: Request, limit: Limit = 100, cursor: Cursor = None
) -> ListPage[TransformShown]:
    """The tables that queries keep, by task and name."""
    overview, project = await ServerState.of(request).newest()
    found = overview.once("transforms", lambda: _all(overview, project))
    return page(found, lambda one: (one.task, one.dataset), limit, cursor)


@router.get("/transforms/{task}/{dataset}", dependencies=[allowed(Action.VIEW_DOCUMENTS)])
def transform(request: Request, task: str, dataset: str) -> TransformDetails:
    """One table that a query keeps: `dataset` is `schema.view`."""
    # Start-up time: sqlglot.
    from polynya.derived.flow import tables_read
    from polynya.derived.plans import FullPlan
    from polynya.engine.commands.derived_queries import (
        checked_query,
        compiled,
        derived_inputs,
        plan_in_words,
        step_plan,
    )

    state = ServerState.of(request)
    overview, project = state.overview.newest(), state.known_project()
    found, name = task_and_name(project, task, dataset)
    query = found.query_of(name)
    sql, copy, plan = query.text or None, None, None
    steps: list[FlowStepShown] = []
    inputs: list[str] = []
    errors: list[dict[str, Any]] = []
    try:
        if query.flow:
            named = derived_inputs(project, found, only=tables_read(query.flow))
            flow = compiled(project, found, name, named)
            sql, inputs = flow.sql, [one.name for one in flow.inputs]
            steps = _steps(flow)
        elif query.text:
            steps = _parts(query.text, dataset)
        checked = checked_query(project, found, name)
        errors += [one.as_dict() for one in checked.errors]
        over = checked.over
        inputs = inputs or ([] if over is None else [one.name for one in over.inputs.values()])
        plan = None if errors else step_plan(found, name, over)
    except PolynyaError as error:
        errors += [one.as_dict() for one in _each(error)]
    try:
        copy = _state_of(project, found, dataset)
    except PolynyaError as error:
        errors.append(error.as_dict())
    derivation = None if copy is None else copy.derivation
    costs = None if derivation is None else derivation.costs
    return TransformDetails(
        **_shown(overview, project, found, name).model_dump(),
        file=query.file or project.files[found.name],
        where=project.where(found.name, *query.path),
        sql=sql,
        settings=[
            one.model_dump(mode="json", exclude_unset=True, by_alias=True) for one in query.flow
        ],
        steps=steps,
        inputs=inputs,
        computed=plan_in_words(plan),
        is_full=None if plan is None else isinstance(plan, FullPlan),
        whole_seconds=costs and costs.whole,
        keyed_seconds=costs and costs.keyed,
        keyed_share=None if costs is None or costs.keyed is None else costs.share,
        expectations=_expectations(found, name, copy),
        errors=errors,
    )


@router.get(
    "/transforms/{task}/{dataset}/steps/{step}/rows", dependencies=[allowed(Action.QUERY_DATA)]
)
def step_rows(
    request: Request,
    task: str,
    dataset: str,
    step: Annotated[int, Path(ge=0, description="its number, from 0")],
    *,
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = 20,
    seconds: Annotated[float, Query(gt=0, le=_SECONDS, allow_inf_nan=False)] = _SECONDS,
) -> FlowStepRows:
    """Some rows of a step as the viewer may read its tables, how many it has, and the seconds.

    It is computed over the newest commits. Steps show what a query does, so they also need the
    right to read documents. `seconds` limits each of the two statements.
    """
    # Who reads data is in the audit log, as for queries.
    request.scope["polynya.logs"] = True
    require(request, Action.VIEW_DOCUMENTS)
    project = ServerState.of(request).known_project()
    found, name = task_and_name(project, task, dataset)
    return _rows(request, _sql_of_step(project, found, name, step), limit, seconds)


@router.post("/flows/check", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def check_flow(request: Request, draft: FlowDraft) -> FlowChecked:
    """The columns of each step of a draft, and what is wrong with it."""
    tables = _tables(ServerState.of(request).known_project(), draft.from_)
    there = {name: one for name, one in tables.items() if one is not None}
    steps, errors = _read(draft.steps)
    made = [_checked(steps, number, there, errors[number]) for number in range(len(steps))]
    return FlowChecked(tables={name: list(one.columns) for name, one in there.items()}, steps=made)


@router.post("/flows/preview", dependencies=[allowed(Action.QUERY_DATA)])
def preview_flow(
    request: Request,
    draft: FlowDraft,
    step: Annotated[int, Query(ge=0, lt=MAX_STEPS, description="its number, from 0")],
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = 20,
) -> FlowStepRows:
    """Some rows of a step of a draft as the viewer may read its tables, and how many it has."""
    tables = _tables(ServerState.of(request).known_project(), draft.from_)
    there = {name: one for name, one in tables.items() if one is not None}
    steps, errors = _read(draft.steps)
    if step >= len(steps):
        raise REQUEST_INVALID(reason=f"the draft has {len(steps)} steps")
    for found in errors[: step + 1]:
        if found:
            raise REQUEST_INVALID(reason=str(found[0]["message"]))
    return _rows(request, _compiled_to(steps, step, there).sql, limit)


def task_and_name(project: LoadedProject, task: str, dataset: str) -> tuple[DerivedTask, str]:
    """The transform of a task's name, and the name that a dataset `schema.view` has in it.

    Raises ConfigError POLYNYA-SRV-001.
    """
    for one in project.tasks:
        if isinstance(one, DerivedTask) and one.name == task:
            for settings in one.datasets:
                if resolved(one, settings).relations.current == dataset:
                    return one, settings.name
    raise NO_SUCH_RESOURCE(what=f"transform {shown(f'{task}/{dataset}')}")


def _sql_of_step(project: LoadedProject, task: DerivedTask, name: str, step: int) -> str:
    """The query of a step of a table's query. Raises ConfigError POLYNYA-SRV-001 and -002."""
    # Start-up time: sqlglot.
    from polynya.derived.flow import tables_read
    from polynya.derived.tables import part_query
    from polynya.engine.commands.derived_queries import checked_query, derived_inputs

    query = task.query_of(name)
    missing = NO_SUCH_RESOURCE(what=f"step {step} of {shown(name)}")
    if query.flow:
        if step >= len(query.flow):
            raise missing
        named = derived_inputs(project, task, only=tables_read(query.flow))
        tables = {called: one for called, one in named.items() if one is not None}
        return _compiled_to(query.flow, step, tables).sql
    checked = checked_query(project, task, name)
    if checked.errors:
        raise ConfigErrors(checked.errors)
    over = checked.over
    if over is None:
        raise REQUEST_INVALID(reason="an input has no columns yet")
    relations = {called: quote_path(*one.name.split(".")) for called, one in over.inputs.items()}
    sql = part_query(over.query.over(relations), step, name)
    if sql is None:
        raise missing
    return sql


def _rows(request: Request, sql: str, limit: int, seconds: float = _SECONDS) -> FlowStepRows:
    """The first rows of a query and their number. Raises ConfigError POLYNYA-SRV-002."""
    # On a line of its own: a comment may end the query.
    count = f"SELECT count(*) AS total FROM ({sql}\n)"
    if len(count) > MOST_TEXT:
        raise REQUEST_INVALID(reason=f"the query of the step has {len(sql):,} characters, too many")
    clock = ServerState.of(request).clock
    began = clock.monotonic()
    found = answered(request, QueryAsked(sql=sql, limit=limit, seconds=seconds))
    total = len(found.rows)
    if found.more:
        total = answered(request, QueryAsked(sql=count, seconds=seconds)).rows[0]["total"]
    return FlowStepRows(
        columns=found.columns,
        rows=found.rows,
        more=found.more,
        total=total,
        seconds=clock.monotonic() - began,
    )


def _all(overview: Overview, project: LoadedProject) -> list[TransformShown]:
    found = [
        _shown(overview, project, task, dataset.name)
        for task in project.tasks
        if isinstance(task, DerivedTask)
        for dataset in task.datasets
    ]
    return sorted(found, key=lambda one: (one.task, one.dataset))


def _shown(
    overview: Overview, project: LoadedProject, task: DerivedTask, name: str
) -> TransformShown:
    (settings,) = (one for one in task.datasets if one.name == name)
    called = resolved(task, settings).relations.current
    facts = overview.datasets.get(called)
    status = facts.status if facts is not None else None
    query, kind = task.query_of(name), _kind(project, task.name)
    return TransformShown(
        dataset=called,
        task=task.name,
        kind=kind,
        query="mart" if kind == "data_mart" else "flow" if query.flow else "sql",
        incremental=query.incremental,
        health=facts.health if facts is not None else HealthWord.UNKNOWN,
        rows=status and status.current_rows,
        last_step=status and status.last_apply_reason,
        last_seconds=status and status.last_apply_seconds,
        derived_at=status and status.applied_at,
        failed=len(status.failures) if status is not None else 0,
    )


def _kind(project: LoadedProject, task: str) -> str:
    """The kind that a task's file says."""
    root = project.documents.get(task)
    if isinstance(root, MapNode) and "kind" in root.entries:
        node = root.entries["kind"][1]
        if isinstance(node, ScalarNode):
            return str(node.value)
    return "transform"


def _state_of(project: LoadedProject, task: DerivedTask, dataset: str) -> CopyState | None:
    if not has_tables(project.target):
        return None
    catalog = python_catalog(project.target)
    entries = tables_of(task, catalog, lambda one: one.relations.current == dataset)
    table = next((one.table for one in entries if one.name == dataset), None)
    return None if table is None else inspect.states(table)[0]


def _expectations(task: DerivedTask, name: str, copy: CopyState | None) -> list[ExpectationShown]:
    failures = copy.failures if copy is not None else {}
    found = []
    for one in task.query_of(name).expect:
        failed = failures.get(one.label)
        found.append(
            ExpectationShown(
                name=one.label,
                kind=one.kind,
                on_failure=one.on_failure,
                failed=failed.steps if failed is not None else 0,
                says=failed and failed.says,
                at=failed and failed.at,
            )
        )
    return found


def _steps(flow: CompiledFlow) -> list[FlowStepShown]:
    return [
        FlowStepShown(
            name=one.name,
            processor=one.processor,
            reads=list(one.reads),
            columns=dict(one.columns),
            sql=one.sql,
        )
        for one in flow.steps
    ]


def _parts(text: str, dataset: str) -> list[FlowStepShown]:
    # Start-up time: sqlglot.
    from polynya.derived.tables import named_parts

    return [
        FlowStepShown(
            name=one.name or "result",
            processor="with" if one.name else "select",
            reads=list(one.reads),
            columns=dict.fromkeys(one.columns),
            sql=one.sql,
        )
        for one in named_parts(text, dataset)
    ]


def _tables(project: LoadedProject, names: Sequence[str]) -> dict[str, DerivedInput | None]:
    """The tables of some tasks. Raises ConfigError POLYNYA-SRV-002 for a task without tables."""
    # Start-up time: sqlglot.
    from polynya.engine.commands.derived_queries import inputs_of

    reads = [one for one in project.tasks if one.name in names]
    registered = [one for one in project.registered if one.name in names]
    missing = set(names) - {one.name for one in reads} - {one.name for one in registered}
    if missing:
        unknown = ", ".join(map(shown, sorted(missing)))
        raise REQUEST_INVALID(reason=f"no task with tables is called {unknown}")
    return inputs_of(project, reads, registered) if has_tables(project.target) else {}


def _read(
    settings: Sequence[Mapping[str, Any]],
) -> tuple[list[FlowStep | None], list[list[dict[str, Any]]]]:
    """The steps of a draft, None for one that is wrong, and the errors of each."""
    steps: list[FlowStep | None] = []
    errors: list[list[dict[str, Any]]] = []
    for number, one in enumerate(settings):
        try:
            steps.append(FlowStep.model_validate(one))
            errors.append([])
        except ValidationError as error:
            steps.append(None)
            errors.append([_invalid(number, one) for one in error.errors()])
    return steps, errors


def _invalid(number: int, error: Any) -> dict[str, Any]:
    place = dotted(("flow", number, *(str(one) for one in error["loc"])))
    found = REQUEST_INVALID(
        str(error["msg"]), where=place, fix=(error.get("ctx") or {}).get("fix"), reason=""
    )
    return found.as_dict()


def _checked(
    steps: Sequence[FlowStep | None],
    number: int,
    tables: Mapping[str, DerivedInput],
    errors: list[dict[str, Any]],
) -> FlowStepChecked:
    if not errors:
        try:
            flow = _compiled_to(steps, number, tables)
            last = flow.steps[-1]
            return FlowStepChecked(
                columns=dict(last.columns),
                keys=[list(key) for key in last.keys],
                sql=flow.sql,
                errors=[],
            )
        except PolynyaError as error:
            # What an earlier step has wrong stands with that step.
            own = dotted(("flow", number))
            errors = [one.as_dict() for one in _each(error) if (one.where or own).startswith(own)]
    return FlowStepChecked(columns=None, keys=[], sql=None, errors=errors)


def _compiled_to(
    steps: Sequence[FlowStep | None], number: int, tables: Mapping[str, DerivedInput]
) -> CompiledFlow:
    """The flow that ends with a step: with those before it that it needs."""
    # Start-up time: sqlglot.
    from polynya.derived.flow import compile_flow, steps_behind

    places = steps_behind(steps, number)
    wanted = [one for place in places if (one := steps[place]) is not None]
    if len(wanted) < len(places):
        raise REQUEST_INVALID(reason="a step before this one is wrong")
    return compile_flow(wanted, tables, _place_in(places))


def _place_in(places: Sequence[int]) -> Callable[[NodePath], str]:
    """Where a path below some steps of a draft is in the whole draft."""

    def where(path: NodePath) -> str:
        if path and isinstance(path[0], int):
            return dotted(("flow", places[path[0]], *path[1:]))
        return dotted(("flow", *path))

    return where


def _each(error: PolynyaError) -> Sequence[PolynyaError]:
    return error.errors if isinstance(error, ConfigErrors) else [error]
