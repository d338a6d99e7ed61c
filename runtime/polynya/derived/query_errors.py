"""What is wrong with the queries of a project as far as its files tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polynya.derived.file_columns import FileColumns
from polynya.derived.flow import tables_read
from polynya.derived.inputs import QueryInput, dataset_named, declared_inputs, views_read
from polynya.derived.tables import parsed_query
from polynya.model.config.derived import DerivedQuery, DerivedTask
from polynya.model.config.task import resolved
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.derived import QUERY_INPUT_UNKNOWN, RELATIONSHIP_REFUSED
from polynya.model.error_catalogue.marts import MART_EXPRESSION_REFUSED
from polynya.model.errors import ConfigError, OperationError
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.transform.expressions import validate_expression
from polynya.transform.parsing import own_calls, parse


def query_errors(project: LoadedProject) -> list[ConfigError]:
    """What is wrong with the queries of all transforms as far as files tell, each once."""
    errors: dict[tuple[str | None, str], ConfigError] = {}
    columns = FileColumns(lambda task, path: project.where(task, *path))
    for task in project.tasks:
        for error in _errors(project, task, columns) if isinstance(task, DerivedTask) else ():
            errors.setdefault((error.where, error.message), error)
    return list(errors.values())


def _errors(
    project: LoadedProject, task: DerivedTask, columns: FileColumns
) -> Iterator[ConfigError]:
    declared, finds_more = declared_inputs(task)
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
        tables = list(table_errors(project, task, name))
        # What a query that reads another table would give is not known.
        yield from tables or columns.errors(task, name)


def table_errors(project: LoadedProject, task: DerivedTask, name: str) -> Iterator[ConfigError]:
    """What is wrong with the text of a query and the tables that it names, as far as files tell."""
    declared, finds_more = declared_inputs(task)
    query, views = task.query_of(name), views_read(task)
    place = project.where(task.name, *query.path)
    if query.flow:
        for read, path in (tables_read(query.flow) or {}).items():
            place = project.where(task.name, *query.path, *path)
            yield from _unknown_table(read, declared, place, finds_more=finds_more)
        return
    try:
        parsed = parsed_query(query.text, place if query.file is None else query.file)
    except OperationError as error:
        yield _as_config(error)
        return
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
            yield _as_config(_is_own(table.name, where) if _names_own(task, table.name) else error)


def _names_own(task: DerivedTask, name: str) -> bool:
    """Whether a name is that of a table or a view of a transform itself."""
    relations = [resolved(task, dataset).relations for dataset in task.datasets]
    own = {name.lower() for one in relations for name in (one.current, one.view)}
    own |= {task.view_of(view).lower() for view in task.query_views}
    return name.lower() in own | {f"{task.prefix}{view}".lower() for view in task.query_views}


def _is_own(name: str, where: str) -> OperationError:
    return QUERY_INPUT_UNKNOWN(
        f"the query reads {shown(name)}, which the same transform makes",
        where=where,
        fix="write its query as a `WITH`, or move one of both to a transform of its own",
    )


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
