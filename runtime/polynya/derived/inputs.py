"""Which dataset a table in a query is, and what is wrong with the queries of a project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from polynya.derived.flow import tables_read
from polynya.derived.tables import parsed_query
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedQuery, DerivedTask
from polynya.model.config.registered import RegisteredDataset
from polynya.model.config.task import resolved
from polynya.model.documents.problems import suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.derived import QUERY_INPUT_UNKNOWN, RELATIONSHIP_REFUSED
from polynya.model.error_catalogue.marts import MART_EXPRESSION_REFUSED
from polynya.model.errors import ConfigError, OperationError
from polynya.model.formats import rules_of
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.transform.expressions import validate_expression
from polynya.transform.parsing import own_calls, parse

_AS_APPLIED: Final = "it shows the state of the last apply, so its rows depend on when applies run"
#: A table that a query may read: one of the project, or one that others maintain.
QueryInput: TypeAlias = ResolvedDataset | RegisteredDataset


def reads_history(name: str, dataset: QueryInput) -> bool:
    """Whether a query that reads a dataset by a name reads its History view."""
    if isinstance(dataset, RegisteredDataset):
        return False
    relations = dataset.relations
    view = relations.history_view
    return name.lower() in {view.lower(), f"{relations.schema}.{view}".lower()}


def dataset_named(
    name: str,
    datasets: Iterable[QueryInput],
    *,
    where: str,
    may_grow: bool,
    in_flow: bool = False,
    reader: str = "the query",
) -> QueryInput | None:
    """The dataset that a query calls `name`: `schema.table`, or `table` where one alone has it.

    The name of its History view stands for it too, but not in a flow. `datasets` are those of the
    tasks that the query may read. None for a name that nothing has yet where `may_grow` says that a
    first run finds more. `reader` is what names it, for errors.

    Raises OperationError for an unknown or ambiguous name, and for the history of a table that
    keeps none; `where` is the place for the message.
    """
    known = {dataset.relations.current: dataset for dataset in datasets}
    found = {
        current: dataset
        for current, dataset in known.items()
        if name.lower() in {current.lower(), dataset.relations.view.lower()}
        or reads_history(name, dataset)
    }
    if len(found) > 1:
        raise QUERY_INPUT_UNKNOWN(
            f"{reader} reads {shown(name)}, which may be {' or '.join(sorted(found))}",
            where=where,
            fix="write the name with its schema",
        )
    if not found:
        _refuse_other_views(name, known.values(), where, reader)
    if not found and not may_grow:
        near = known if "." in name else {one.relations.view: one for one in known.values()}
        fix = suggest(name, sorted(near)) or "add its task to `from`"
        raise QUERY_INPUT_UNKNOWN(where=where, reader=reader, table=shown(name), fix=fix)
    dataset = next(iter(found.values()), None)
    if not isinstance(dataset, ResolvedDataset) or not reads_history(name, dataset):
        return dataset
    if in_flow:
        raise QUERY_INPUT_UNKNOWN(
            f"{reader} reads {shown(name)}, which has several rows for each key",
            where=where,
            fix="write the query as `sql`",
        )
    if not dataset.kept.history:
        raise QUERY_INPUT_UNKNOWN(
            f"the query reads {shown(name)}, and {shown(dataset.relations.current)} keeps no "
            "history",
            where=where,
            fix="set `history: true` for it in its task",
        )
    return dataset


def _refuse_other_views(name: str, datasets: Iterable[QueryInput], where: str, reader: str) -> None:
    """Raise OperationError for a view whose rows go or change without a change of a record."""
    for dataset in datasets:
        if not isinstance(dataset, ResolvedDataset):
            continue
        relations = dataset.relations
        versions = f"read {shown(relations.history_view)}, which has every version of every row"
        for view, reason, fix in (
            (
                relations.changes_view,
                "its rows go when they are applied or expire, though no record changes",
                versions,
            ),
            (relations.current_stored_view, _AS_APPLIED, f"read {shown(relations.view)}"),
            (relations.history_stored_view, _AS_APPLIED, versions),
        ):
            if name.lower() in {view.lower(), f"{relations.schema}.{view}".lower()}:
                raise QUERY_INPUT_UNKNOWN(
                    f"{reader} reads {shown(name)}, and {reason}",
                    where=where,
                    fix=fix,
                )


def views_read(task: DerivedTask) -> dict[str, tuple[str, str]]:
    """Schema and view of the views of queries that a view of a task may read, by what SQL may say.

    They are those of the transforms in `from`; names are in lower case.
    """
    return {
        name.lower(): (read.schema_, f"{read.prefix}{view}")
        for read in task.reads
        if isinstance(read, DerivedTask)
        for view in read.query_views
        for name in (read.view_of(view), f"{read.prefix}{view}")
    }


def query_errors(project: LoadedProject) -> list[ConfigError]:
    """What is wrong with the queries of all transforms as far as files tell, one for each place."""
    errors: dict[str, ConfigError] = {}
    for task in project.tasks:
        for error in _errors(project, task) if isinstance(task, DerivedTask) else ():
            errors.setdefault(error.where or "", error)
    return list(errors.values())


def _errors(project: LoadedProject, task: DerivedTask) -> Iterator[ConfigError]:
    finds_more = any(rules_of(read.landing.format).finds_tables for read in task.reads)
    declared: list[QueryInput] = [
        resolved(read, dataset) for read in task.reads for dataset in read.datasets
    ]
    declared += [dataset for read in task.registered for dataset in read.datasets()]
    views = views_read(task)
    for name, query in (*task.queries.items(), *task.query_views.items()):
        for number in range(len(query.expect)):
            place = project.where(task.name, *query.path_of_expectation(number))
            yield from _expectation_errors(
                task, query, number, declared, place, finds_more=finds_more
            )
        wrong = [one for part in query.expressions for one in _wrong(project, task, *part)]
        if wrong:
            yield from wrong
            continue
        place = project.where(task.name, *query.path)
        if query.flow:
            for read, path in (tables_read(query.flow) or {}).items():
                place = project.where(task.name, *query.path, *path)
                yield from _unknown_table(read, declared, place, finds_more=finds_more)
            continue
        try:
            parsed = parsed_query(query.text, place if query.file is None else query.file)
        except OperationError as error:
            yield _as_config(error)
            continue
        for table in parsed.tables:
            where = place if query.file is None else f"{query.file}:{table.line}:{table.column}"
            if table.name.lower() in views:
                # A table needs to know which of its rows change.
                if name not in task.query_views:
                    yield _as_config(_is_view(table.name, where))
                continue
            try:
                dataset_named(table.name, declared, where=where, may_grow=finds_more)
            except OperationError as error:
                yield _as_config(error)


def _is_view(name: str, where: str) -> OperationError:
    return QUERY_INPUT_UNKNOWN(
        f"the query reads {shown(name)}, a view, which only views read",
        where=where,
        fix="write its query as a `WITH`, or let it `materialize: table`",
    )


def _wrong(
    project: LoadedProject, task: DerivedTask, path: NodePath, text: str
) -> Iterator[ConfigError]:
    """What is wrong with an expression that a person wrote into a query that was not."""
    where = project.where(task.name, *path)
    try:
        validate_expression(text, where=where)
        for call, _ in own_calls(parse(text, where)):
            raise MART_EXPRESSION_REFUSED(where=where, function=shown(call.name))
    except ConfigError as error:
        yield error


def _expectation_errors(
    task: DerivedTask,
    query: DerivedQuery,
    number: int,
    declared: Sequence[QueryInput],
    place: str,
    *,
    finds_more: bool,
) -> Iterator[ConfigError]:
    """What is wrong with an expectation before the columns of its table are known."""
    expectation = query.expect[number]
    if expectation.condition is not None:
        try:
            validate_expression(expectation.condition, where=place)
        except ConfigError as error:
            yield error
    if expectation.relationship is not None:
        name = expectation.relationship.to
        own = [resolved(task, dataset).relations for dataset in task.datasets]
        names = {*(one.current.lower() for one in own), *(one.view.lower() for one in own)}
        known = {*(one.relations.current.lower() for one in declared)}
        known |= {one.relations.view.lower() for one in declared}
        if name.lower() in names - known:
            yield RELATIONSHIP_REFUSED(where=place, table=shown(name))
            return
        yield from _unknown_table(
            name, declared, place, finds_more=finds_more, reader="the relationship"
        )


def _unknown_table(
    name: str,
    declared: Sequence[QueryInput],
    place: str,
    *,
    finds_more: bool,
    reader: str = "a flow",
) -> Iterator[ConfigError]:
    """The error of a table that is named; its columns are known once the table exists."""
    try:
        dataset_named(name, declared, where=place, may_grow=finds_more, in_flow=True, reader=reader)
    except OperationError as error:
        yield _as_config(error)


def _as_config(error: OperationError) -> ConfigError:
    return ConfigError(error.code, error.message, where=error.where, why=error.why, fix=error.fix)
