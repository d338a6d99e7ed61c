"""The columns that the files of a project tell: of inputs, and of what queries make of them.

Landed data may bring columns that no file names, so the columns of most tables stay open: any
name may be one of them. The columns of a result follow from its query. Nothing is read here but
files that are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from polynya.derived.flow import compile_flow, tables_read
from polynya.derived.inputs import QueryInput, dataset_named, declared_inputs, reads_history
from polynya.derived.names import ANY_COLUMNS, RelationColumns
from polynya.derived.schema import DerivedInput, as_flow_input
from polynya.derived.statement import result_columns
from polynya.derived.tables import parsed_query
from polynya.lake.fold.live_views import STABLE_HISTORY_COLUMNS
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedQuery, DerivedTask
from polynya.model.documents.problems import suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.derived import RESULT_KEYS_WRONG
from polynya.model.errors import ConfigError, ConfigErrors, PolynyaError
from polynya.model.headers import FROM_TIMESTAMP
from polynya.model.names import shown
from polynya.model.types import Void
from polynya.transform.rules import columns_after, resolve

_DELETED: Final = "hdr__deleted"
#: `file:line:col` of a path in the file of a task.
PlaceInTask: TypeAlias = Callable[[str, NodePath], str]


@dataclass(slots=True)
class FileColumns:
    """The columns of a project as its files tell them; each query is followed once."""

    where: PlaceInTask
    _results: dict[tuple[str, str], tuple[RelationColumns, list[ConfigError]]] = field(
        default_factory=dict
    )

    def errors(self, task: DerivedTask, name: str) -> list[ConfigError]:
        """What is wrong with the names of a query whose text and tables are sound."""
        return self._result(task, name)[1]

    def _result(self, task: DerivedTask, name: str) -> tuple[RelationColumns, list[ConfigError]]:
        """The columns that a query gives, and its errors; with errors they are open."""
        key = (task.name, name)
        if key not in self._results:
            # What reads itself has an error of its own.
            self._results[key] = (ANY_COLUMNS, [])
            self._results[key] = self._followed(task, name)
        return self._results[key]

    def _followed(self, task: DerivedTask, name: str) -> tuple[RelationColumns, list[ConfigError]]:
        query = task.query_of(name)
        try:
            columns = self._of_flow(task, query) if query.flow else self._of_sql(task, query)
        except ConfigError as error:
            placed = in_task_file(error, query, self.where(task.name, query.path))
            return ANY_COLUMNS, list(
                placed.errors if isinstance(placed, ConfigErrors) else [placed]
            )
        errors = list(key_errors(task, name, columns, self.where))
        return (ANY_COLUMNS if errors else columns), errors

    def _of_sql(self, task: DerivedTask, query: DerivedQuery) -> RelationColumns:
        inputs = {}
        try:
            names = parsed_query(query.text, "").names
        except PolynyaError:
            return ANY_COLUMNS
        for name in names:
            columns = self._of_input(task, name)
            inputs[name] = DerivedInput(
                name, dict.fromkeys(columns.names, ""), (), columns.is_open, columns.lacks
            )
        return result_columns(query.text, inputs, query.file or "")

    def _of_flow(self, task: DerivedTask, query: DerivedQuery) -> RelationColumns:
        """The columns of a flow, which needs to know those of its tables. Raises ConfigErrors."""
        named = tables_read(query.flow)
        declared, finds_more = declared_inputs(task)
        if named is None and (finds_more or len(declared) != 1):
            return ANY_COLUMNS
        names = [declared[0].relations.current] if named is None else list(named)
        inputs: dict[str, DerivedInput] = {}
        for name in names:
            columns = self._of_input(task, name, in_flow=True)
            dataset = _named(task, name, in_flow=True)
            if columns.is_open or not isinstance(dataset, ResolvedDataset):
                return ANY_COLUMNS
            types = dict.fromkeys(columns.names, str(Void()))
            inputs[name] = as_flow_input(DerivedInput(name, types, dataset.events.keys))
        flow = compile_flow(
            query.flow, inputs, lambda path: self.where(task.name, (*query.path, *path))
        )
        return RelationColumns(tuple(flow.columns))

    def _of_input(self, task: DerivedTask, name: str, *, in_flow: bool = False) -> RelationColumns:
        """The columns of what a query of a task calls by a name."""
        for read in task.reads:
            if not isinstance(read, DerivedTask):
                continue
            for view in read.query_views:
                if name.lower() in {read.view_of(view).lower(), f"{read.prefix}{view}".lower()}:
                    return self._result(read, view)[0]
        dataset = _named(task, name, in_flow=in_flow)
        if not isinstance(dataset, ResolvedDataset):
            # Nobody declares the columns of a registered table.
            return ANY_COLUMNS
        columns = self._of_table(task, dataset)
        headers: tuple[str, ...] = ()
        if reads_history(name, dataset):
            headers = tuple(STABLE_HISTORY_COLUMNS)
        elif not columns.is_open:
            headers += (FROM_TIMESTAMP,) if dataset.relations.from_timestamp else ()
            headers += (_DELETED,) if dataset.kept.delete_mode == "soft" else ()
        return replace(columns, names=(*columns.names, *headers))

    def _of_table(self, task: DerivedTask, dataset: ResolvedDataset) -> RelationColumns:
        """The data columns of a table."""
        for read in task.reads:
            if read.name != dataset.task or not isinstance(read, DerivedTask):
                continue
            if dataset.name in read.queries:
                columns = self._result(read, dataset.name)[0]
                # Files that are laid out by a column keep it when the query drops it.
                return columns if _has_layout(dataset, columns) else ANY_COLUMNS
        return of_landed(dataset)


def _named(task: DerivedTask, name: str, *, in_flow: bool) -> QueryInput | None:
    """The dataset of a name; None for a name that is wrong, or whose task will find it."""
    declared, finds_more = declared_inputs(task)
    try:
        return dataset_named(name, declared, where="", may_grow=finds_more, in_flow=in_flow)
    except PolynyaError:
        return None


def _has_layout(dataset: ResolvedDataset, columns: RelationColumns) -> bool:
    layout = dataset.layout
    used = [term.column for term in layout.partition_by]
    used += [column for term in layout.sort_by for column in term.columns]
    return all(columns.may_have(name) for name in used)


def of_landed(dataset: ResolvedDataset) -> RelationColumns:
    """The data columns of a table of landed records.

    They are known where files have no header line, so that `columns` names all of them. Elsewhere
    records may bring others; keys are known, and what is left out.
    """
    mapping, events = dataset.mapping, dataset.events
    left_out = {name.lower() for name in events.except_columns}
    if dataset.landing.format == "csv" and not dataset.landing.delivery.has_header:
        met = mapping.declared if mapping.is_set else events.columns
        try:
            names = [name for name, _, _ in columns_after(resolve(dataset, met), met)]
        except PolynyaError:
            return ANY_COLUMNS
        return RelationColumns(tuple(name for name in names if name.lower() not in left_out))
    if mapping.nested == "expand" or any(rule.gives_name for rule in mapping.rules):
        # Fields and renamed columns may have any name.
        return ANY_COLUMNS
    made = {*mapping.names, *events.keys, *events.optional}
    made |= {name for rule in mapping.rules for name in rule.added}
    left_out |= {one.source.lower() for one in mapping.columns if one.source is not None}
    keys = () if mapping.rules else events.keys
    return RelationColumns(
        keys, is_open=True, lacks=frozenset(left_out - {n.lower() for n in made})
    )


def of_settings(dataset: ResolvedDataset) -> RelationColumns:
    """The columns that the settings of a table name or make, which it may not have yet."""
    rules = dataset.mapping.rules
    names = {*dataset.mapping.names, *dataset.events.columns, *dataset.mapping.declared}
    names |= {name for rule in rules for name in rule.added}
    return RelationColumns(tuple(sorted(names)), any(rule.gives_name for rule in rules))


def key_errors(
    task: DerivedTask, name: str, columns: RelationColumns, where: PlaceInTask
) -> Iterator[ConfigError]:
    """The error of columns of one name, or else of `keys` that a result lacks."""
    folded = [column.lower() for column in columns.names if column]
    twice = [column for column in columns.names if folded.count(column.lower()) > 1]
    if twice:
        query = task.query_of(name)
        problem = f"the query has more than one column called {shown(twice[0])}"
        error = RESULT_KEYS_WRONG(problem=problem)
        place = where(task.name, query.path) if query.file is None else f"{query.file}:1:1"
        yield ConfigError(
            error.code,
            error.message,
            where=place,
            why=error.why,
            fix="give each an alias of its own",
        )
        return
    keys = next((one.keys for one in task.datasets if one.name == name), None) or ()
    for key in keys:
        if not columns.may_have(key, quoted=True):
            problem = f"the query has no column called {shown(key)}, which `keys` names"
            error = RESULT_KEYS_WRONG(problem=problem)
            yield ConfigError(
                error.code,
                error.message,
                where=where(task.name, (*task.query_of(name).path[:-1], "keys")),
                why=error.why,
                fix=suggest(key, columns.names) or error.fix,
            )
            return


def in_task_file(error: ConfigError, query: DerivedQuery, place: str) -> ConfigError:
    """An error in the text of a query, whose `place` in the file of the task is given.

    A text with a file of its own has its errors there, a flow at its steps.
    """
    if query.file is not None or query.flow:
        return error
    if isinstance(error, ConfigErrors):
        return ConfigErrors(in_task_file(one, query, place) for one in error.errors)
    if error.where is None:
        return error
    _, line, column = error.where.rsplit(":", 2)
    message = f"{error.message} at line {line}, column {column} of the query"
    return ConfigError(error.code, message, where=place, why=error.why, fix=error.fix)
