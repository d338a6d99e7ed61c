"""Which dataset a table in a query is, and what is wrong with the queries of a project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from polynya.lake.fold.live_views import definitions, history_input
from polynya.lake.fold.shape import Shape
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.registered import RegisteredDataset
from polynya.model.config.task import resolved
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.derived import QUERY_INPUT_UNKNOWN
from polynya.model.formats import rules_of
from polynya.model.names import shown

_AS_APPLIED: Final = "it shows the state of the last apply, so its rows depend on when applies run"
#: A table that a query may read: one of the project, or one that others maintain.
QueryInput: TypeAlias = ResolvedDataset | RegisteredDataset
#: Stands for the place of a table where only the text of its view matters.
ANYWHERE: Final = "input"


def reads_history(name: str, dataset: QueryInput) -> bool:
    """Whether a query that reads a dataset by a name reads its History view."""
    if isinstance(dataset, RegisteredDataset):
        return False
    relations = dataset.relations
    view = relations.history_view
    return name.lower() in {view.lower(), f"{relations.schema}.{view}".lower()}


def view_of_input(name: str, dataset: ResolvedDataset, shape: Shape, place: str) -> str:
    """What a query reads by the name of an input, over its table at a place."""
    if reads_history(name, dataset):
        return history_input(dataset, shape, place)
    return definitions(dataset, shape, place)[dataset.relations.view]


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


def declared_inputs(task: DerivedTask) -> tuple[list[QueryInput], bool]:
    """The tables that a transform may read as files name them; whether a first run finds more."""
    finds_more = any(rules_of(read.landing.format).finds_tables for read in task.reads)
    declared: list[QueryInput] = [
        resolved(read, dataset) for read in task.reads for dataset in read.datasets
    ]
    declared += [dataset for read in task.registered for dataset in read.datasets()]
    return declared, finds_more
