"""A data mart becomes a task of derived tables: a query for each dimension and each fact.

Facts read the dimensions, so each of their keys is one of the snapshot of the dimension that they
were derived from. What a person could not see from the file alone, such as columns of tables, is
checked when the tables have some, by `polynya plan`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedDataset, DerivedQuery, DerivedTask
from polynya.model.config.mart import (
    AccumulatingSnapshotFact,
    AnyDimension,
    AnyFact,
    DataMart,
    DateDimension,
    DimensionRole,
    MartColumn,
    MartTable,
    Milestone,
    PeriodicSnapshotFact,
    TableDimension,
)
from polynya.model.config.settings import DatasetSettings
from polynya.model.config.task import StorageTask, resolved
from polynya.model.documents.problems import Problem, suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.marts import (
    DIMENSION_UNKNOWN,
    FACT_TIME_MISSING,
    MART_COLUMN_UNKNOWN,
    MART_HISTORY_MISSING,
    MART_NAME_TAKEN,
    MART_TABLE_UNKNOWN,
    RELATIONSHIP_MISSING,
    RELATIONSHIP_NOT_TO_KEY,
    RELATIONSHIP_UNCLEAR,
)
from polynya.model.formats import rules_of
from polynya.model.mart_queries import (
    DATE_COLUMNS,
    PERIOD_COLUMNS,
    VERSION_COLUMNS,
    DimensionQuery,
    FactQuery,
    MartLink,
    MilestoneQuery,
    RoleQuery,
    SelectedColumn,
    dates_sql,
    dimension_sql,
    fact_sql,
    versions_sql,
)
from polynya.model.names import folded, literal, quote, shown
from polynya.model.project_derived import SAME_SETTINGS, derived_task, written

#: Relationships that one way has at most.
_LONGEST_WAY: Final = 16
#: Ways that are looked for; more than one is an error in any case.
_MOST_WAYS: Final = 5


@dataclass(frozen=True, slots=True)
class _Table:
    """A table as queries name it; `dataset` is None where its task finds it only when it runs."""

    name: str
    history: str
    dataset: ResolvedDataset | None


@dataclass(frozen=True, slots=True)
class _Made:
    """A table of the mart: its key for facts, and the dataset with its query."""

    dataset: DerivedDataset
    query: DerivedQuery


@dataclass(slots=True)
class _Expansion:
    """What is known while a mart is expanded, and what is wrong with it."""

    mart: DataMart
    sources: Sequence[StorageTask]
    problems: list[Problem] = field(default_factory=list)
    links: list[MartLink] = field(default_factory=list)
    #: Names of tables that nobody has. No way to or from them is looked for.
    unknown: set[str] = field(default_factory=set)
    #: Whether a relationship is wrong, so that a way may only seem to be missing.
    links_wrong: bool = False

    def refuse(self, path: NodePath, error: Any) -> None:
        """Note that something is wrong."""
        self.problems.append(Problem(path, error))


def as_mart(
    mart: DataMart,
    sources: Mapping[str, StorageTask],
    defaults: DatasetSettings,
) -> DerivedTask | list[Problem]:
    """The task as a run has it, or what is wrong with the mart.

    `sources` has every task with tables of the project, `defaults` are those of the project.
    """
    for index, name in enumerate(mart.inputs):
        if name not in sources:
            error = MART_TABLE_UNKNOWN(
                f"a data mart reads no registered table, and {shown(name)} has only these",
                fix="keep what the mart needs of it in a transform, and name that in `from`",
            )
            return [Problem(("from", index), error)]
    expansion = _Expansion(mart, [sources[name] for name in dict.fromkeys(mart.inputs)])
    _read_relationships(expansion)
    _names_of_tables(expansion)
    dimensions = [
        _dimension(expansion, dimension, ("dimensions", index))
        for index, dimension in enumerate(mart.dimensions)
    ]
    facts = [_fact(expansion, fact, ("facts", index)) for index, fact in enumerate(mart.facts)]
    if expansion.problems:
        return expansion.problems
    made = [one for one in (*dimensions, *facts) if one is not None]
    of_dimensions = derived_task(
        mart,
        [one.dataset for one in dimensions if one is not None],
        {one.dataset.name: one.query for one in dimensions if one is not None},
        sources,
        defaults,
    )
    task = derived_task(
        mart,
        [one.dataset for one in made],
        {one.dataset.name: one.query for one in made},
        sources,
        defaults,
    )
    return task.model_copy(update={"reads": (*task.reads, of_dimensions)}) if facts else task


def of_mart(problem: Problem, mart: DataMart) -> Problem:
    """A problem of the derived task, with the path that the mart has for it."""
    if problem.path[:1] != ("datasets",) or not isinstance(problem.path[1], int):
        return problem
    index, count = problem.path[1], len(mart.dimensions)
    place = ("dimensions", index) if index < count else ("facts", index - count)
    return Problem((*place, *problem.path[2:]), problem.error)


def _names_of_tables(expansion: _Expansion) -> None:
    mart = expansion.mart
    tables = [
        *((one.name, ("dimensions", index)) for index, one in enumerate(mart.dimensions)),
        *((one.name, ("facts", index)) for index, one in enumerate(mart.facts)),
    ]
    seen: set[str] = set()
    for name, path in tables:
        if name.lower() in seen:
            error = MART_NAME_TAKEN(what="a table of the mart called", name=shown(name))
            expansion.refuse((*path, "name"), error)
        seen.add(name.lower())


def _table(expansion: _Expansion, name: str, path: NodePath | None) -> _Table:
    """The table of a name; an unknown one is noted, and taken as it is written.

    Without a path it was looked up before, and nothing is noted.
    """
    known = {
        dataset.relations.current: dataset
        for task in expansion.sources
        for dataset in (resolved(task, declared) for declared in task.datasets)
    }
    named = [
        dataset
        for current, dataset in known.items()
        if name.lower() in {current.lower(), dataset.relations.view.lower()}
    ]
    if len(named) == 1:
        relations = named[0].relations
        history = f"{relations.schema}.{relations.history_view}"
        return _Table(relations.current, history, named[0])
    finding = [task for task in expansion.sources if rules_of(task.landing.format).finds_tables]
    wrong = len(expansion.problems)
    if path is None:
        pass
    elif len(named) > 1:
        others = sorted(dataset.relations.current for dataset in named)
        error = MART_TABLE_UNKNOWN(
            f"{shown(name)} may be {' or '.join(others)}", fix="write the name with its schema"
        )
        expansion.refuse(path, error)
    elif not finding or "." not in name:
        near = known if "." in name else {one.relations.view: one for one in known.values()}
        fix = "write the name with its schema" if finding else suggest(name, sorted(near))
        fix = fix or "add its task to `from`"
        expansion.refuse(path, MART_TABLE_UNKNOWN(fix=fix, table=shown(name)))
    if len(expansion.problems) > wrong:
        expansion.unknown.add(name)
    suffix = finding[0].views.history if finding else "__history"
    return _Table(name, f"{name}{suffix}", None)


def _read_relationships(expansion: _Expansion) -> None:
    taken: set[tuple[str, str]] = set()
    for index, one in enumerate(expansion.mart.relationships):
        path = ("relationships", index)
        child = _table(expansion, one.from_, (*path, "from"))
        parent = _table(expansion, one.to, (*path, "to"))
        name = one.name or one.to.rpartition(".")[2]
        if (child.name, name.lower()) in taken:
            what = f"a relationship of {shown(child.name)} called"
            error = MART_NAME_TAKEN(
                what=what, name=shown(name), fix="give each relationship a `name` of its own"
            )
            expansion.refuse((*path, "name") if one.name else path, error)
        taken.add((child.name, name.lower()))
        keys = () if parent.dataset is None else parent.dataset.events.keys
        if keys and {folded(to) for to in one.on.values()} != {folded(key) for key in keys}:
            error = RELATIONSHIP_NOT_TO_KEY(table=shown(parent.name), keys=", ".join(keys))
            expansion.refuse((*path, "on"), error)
        on = tuple(one.on.items())
        expansion.links.append(MartLink(name, child.name, parent.name, parent.history, on))
    expansion.links_wrong = bool(expansion.problems)


def _way(
    expansion: _Expansion, child: str, parent: str, via: Sequence[str], path: NodePath
) -> tuple[MartLink, ...]:
    """The relationships from one table to another; what is wrong is noted, and none returned."""
    links = expansion.links
    if expansion.links_wrong or expansion.unknown & {child, parent}:
        return ()
    if via:
        way: list[MartLink] = []
        at = child
        for index, name in enumerate(via):
            from_here = {link.name: link for link in links if link.child == at}
            found = {key.lower(): link for key, link in from_here.items()}.get(name.lower())
            if found is None:
                error = RELATIONSHIP_MISSING(
                    f"no relationship called {shown(name)} begins at {at}",
                    fix=suggest(name, sorted(from_here)) or "add it to `relationships`",
                )
                expansion.refuse((*path, "via", index), error)
                return ()
            way.append(found)
            at = found.parent
        if at != parent:
            error = RELATIONSHIP_MISSING(
                f"`via` leads to {at}, not to {parent}", fix=f"name the way to {parent}"
            )
            expansion.refuse((*path, "via"), error)
        return tuple(way)
    ways = list(_ways(links, child, parent))
    if not ways:
        reached = sorted({link.parent for link in links if link.child == child})
        fix = f"add a relationship; from {child} they lead to {', '.join(reached) or 'no table'}"
        error = RELATIONSHIP_MISSING(child=child, parent=parent, fix=fix)
        expansion.refuse(path, error)
        return ()
    if len(ways) > 1:
        texts = [f"[{', '.join(link.name for link in way)}]" for way in ways]
        error = RELATIONSHIP_UNCLEAR(
            ways="several ways" if len(ways) >= _MOST_WAYS else f"{len(ways)} ways",
            child=child,
            parent=parent,
            paths=", ".join(texts),
            fix=f"choose one, such as `via: {texts[0]}`",
        )
        expansion.refuse(path, error)
    return ways[0]


def _ways(links: Sequence[MartLink], child: str, parent: str) -> Iterator[tuple[MartLink, ...]]:
    """Yield the ways from one table to another that visit no table twice, up to _MOST_WAYS."""
    count = 0
    # The tables from which a way may still lead there; all others are dead ends.
    leading = {parent}
    while more := {link.child for link in links if link.parent in leading} - leading:
        leading |= more
    # A table that refers to itself is left by another relationship only.
    waiting: list[tuple[MartLink, ...]] = [
        (link,)
        for link in links
        if link.child == child and link.parent in {parent, *(leading - {child})}
    ]
    while waiting and count < _MOST_WAYS:
        way = waiting.pop(0)
        if way[-1].parent == parent:
            count += 1
            yield way
            continue
        visited = {child, *(link.parent for link in way)}
        if len(way) < _LONGEST_WAY:
            waiting += [
                (*way, link)
                for link in links
                if link.child == way[-1].parent
                and link.parent in leading
                and link.parent not in visited
            ]


def _columns(
    expansion: _Expansion, table: _Table, columns: Sequence[str | MartColumn], path: NodePath
) -> Iterator[SelectedColumn]:
    """Yield the columns of a dimension or fact."""
    for index, column in enumerate(columns):
        place = (*path, "columns", index)
        if isinstance(column, str):
            yield SelectedColumn(column, quote(column))
        elif column.expression is not None:
            yield SelectedColumn(column.name, column.expression)
        else:
            sql = quote(column.column or column.name)
            if column.table is None:
                yield SelectedColumn(column.name, sql)
                continue
            other = _table(expansion, column.table, (*place, "table"))
            way = _way(expansion, table.name, other.name, column.via, place)
            yield SelectedColumn(column.name, sql, way)


def _expressions(one: MartTable, path: NodePath) -> Iterator[tuple[NodePath, str]]:
    """Yield the expressions of a dimension or fact, each with its path."""
    for index, column in enumerate(one.columns):
        if isinstance(column, MartColumn) and column.expression is not None:
            yield (*path, "columns", index, "expression"), column.expression
    if one.where is not None:
        yield (*path, "where"), one.where


def _dimension(expansion: _Expansion, one: AnyDimension, path: NodePath) -> _Made | None:
    key = key_of(one)
    if isinstance(one, DateDimension):
        _refuse_clashes(expansion, [(key, (*path, "key")), *((n, path) for n in DATE_COLUMNS)])
        return _made(one, [key], path, dates_sql(key, one.first, one.last), [], reads_own=False)
    table = _table(expansion, one.table, (*path, "table"))
    columns = list(_columns(expansion, table, one.columns, path))
    more = VERSION_COLUMNS if one.type == 2 else ()
    names = [
        (key, (*path, "key")),
        *((name, (*path, "keys", index)) for index, name in enumerate(one.keys)),
        *((name, path) for name in more),
        *((c.name, (*path, "columns", index)) for index, c in enumerate(columns)),
    ]
    _refuse_clashes(expansion, names)
    known = {folded(name) for name in (*one.keys, *(column.name for column in columns))}
    for name in one.unknown:
        if folded(name) not in known:
            fix = suggest(name, [*one.keys, *(column.name for column in columns)])
            error = MART_COLUMN_UNKNOWN(what="a column", name=shown(name), fix=fix)
            expansion.refuse((*path, "unknown", name), error)
    if one.type == 2:
        _needs_history(expansion, table, "a dimension of type 2", (*path, "table"))
        for index, column in enumerate(columns):
            for link in column.path:
                other = _table(expansion, link.parent, None)
                place = (*path, "columns", index)
                _needs_history(expansion, other, "a dimension of type 2", place)
    query = DimensionQuery(
        key=key,
        table=table.name,
        history=table.history,
        keys=one.keys,
        columns=tuple(columns),
        where=one.where,
        unknown={name: _constant(value) for name, value in one.unknown.items()},
        extends_first=one.before_first == "first_version",
    )
    if one.type == 1:
        sql, valid = dimension_sql(query), None
    else:
        sql, valid = versions_sql(query), (VERSION_COLUMNS[0], VERSION_COLUMNS[1])
    return _made(one, [key], path, sql, _expressions(one, path), reads_own=False, valid=valid)


def key_of(dimension: AnyDimension) -> str:
    """The name of the surrogate key of a dimension."""
    return dimension.key or f"{dimension.name}_key"


def _needs_history(expansion: _Expansion, table: _Table, what: str, path: NodePath) -> None:
    if table.dataset is not None and not table.dataset.kept.history:
        expansion.refuse(path, MART_HISTORY_MISSING(what=what, table=shown(table.name)))


def _fact(expansion: _Expansion, one: AnyFact, path: NodePath) -> _Made | None:
    table = _table(expansion, one.table, (*path, "table"))
    periodic = isinstance(one, PeriodicSnapshotFact)
    if periodic:
        _needs_history(expansion, table, "a periodic snapshot", (*path, "table"))
    columns = list(_columns(expansion, table, one.columns, path))
    expressions = [*_expressions(one, path)]
    expressions += [((*path, "measures", name), sql) for name, sql in one.measures.items()]
    milestones: list[MilestoneQuery] = []
    own_milestones: list[SelectedColumn] = []
    lags: list[tuple[str, str, str]] = []
    if isinstance(one, AccumulatingSnapshotFact):
        for name, milestone in one.milestones.items():
            place = (*path, "milestones", name)
            if isinstance(milestone, Milestone):
                milestones += _milestone(expansion, table, name, milestone, place)
            else:
                own_milestones.append(SelectedColumn(name, milestone))
                expressions.append((place, milestone))
        for name, ends in one.lags.items():
            for index, end in enumerate(ends):
                if end not in one.milestones:
                    fix = suggest(end, list(one.milestones))
                    error = MART_COLUMN_UNKNOWN(what="a milestone", name=shown(end), fix=fix)
                    expansion.refuse((*path, "lags", name, index), error)
            lags.append((name, ends[0], ends[1]))
    roles = list(_roles(expansion, one, table, path, expressions))
    names = [
        *((name, path) for name in (PERIOD_COLUMNS if periodic else ())),
        *((name, (*path, "keys", index)) for index, name in enumerate(one.keys)),
        *((c.name, (*path, "columns", index)) for index, c in enumerate(columns)),
        *((f"{role.name}_key", (*path, "dimensions", n)) for n, role in enumerate(roles)),
        *((name, (*path, "measures", name)) for name in one.measures),
        *(
            (name, (*path, group, name))
            for group in ("milestones", "lags")
            for name in getattr(one, group, ())
        ),
    ]
    _refuse_clashes(expansion, names)
    query = FactQuery(
        table=table.name,
        history=table.history,
        keys=one.keys,
        columns=(*columns, *own_milestones),
        measures=tuple(SelectedColumn(name, sql) for name, sql in one.measures.items()),
        roles=tuple(roles),
        where=one.where,
        period=one.period if isinstance(one, PeriodicSnapshotFact) else None,
        milestones=tuple(milestones),
        lags=tuple(lags),
    )
    if expansion.problems:
        return None
    keys = [*(PERIOD_COLUMNS[:1] if periodic else ()), *one.keys]
    return _made(one, keys, path, fact_sql(query), expressions, reads_own=bool(roles))


def _milestone(
    expansion: _Expansion, table: _Table, name: str, one: Milestone, path: NodePath
) -> Iterator[MilestoneQuery]:
    """Yield the milestone, unless no single relationship leads from its table to the fact's."""
    other = _table(expansion, one.table, (*path, "table"))
    found = [
        link
        for link in expansion.links
        if (link.child, link.parent) == (other.name, table.name)
        and (one.via is None or link.name.lower() == one.via.lower())
    ]
    if len(found) == 1:
        function = "min" if one.pick == "first" else "max"
        yield MilestoneQuery(name, found[0], one.column, function)
    elif expansion.links_wrong or expansion.unknown & {other.name, table.name}:
        return
    elif found:
        names = sorted(link.name for link in found)
        error = RELATIONSHIP_UNCLEAR(
            ways=f"{len(found)} relationships",
            child=other.name,
            parent=table.name,
            paths=", ".join(names),
            fix=f"choose one, such as `via: {names[0]}`",
        )
        expansion.refuse(path, error)
    else:
        fix = "add one to `relationships`"
        error = RELATIONSHIP_MISSING(child=other.name, parent=table.name, fix=fix)
        expansion.refuse((*path, "via") if one.via else path, error)


def _roles(
    expansion: _Expansion,
    fact: AnyFact,
    table: _Table,
    path: NodePath,
    expressions: list[tuple[NodePath, str]],
) -> Iterator[RoleQuery]:
    """Yield the dimensions of a fact in their roles; adds their expressions to the list."""
    by_name = {one.name: one for one in expansion.mart.dimensions}
    time = getattr(fact, "time", None)
    reached = getattr(fact, "milestones", {})
    if time is not None and time not in reached:
        expressions.append(((*path, "time"), time))
    schema = expansion.mart.schema_ or expansion.mart.name
    for index, written_role in enumerate(fact.dimensions):
        place = (*path, "dimensions", index)
        role = (
            DimensionRole(dimension=written_role) if isinstance(written_role, str) else written_role
        )
        dimension = by_name.get(role.dimension)
        if dimension is None:
            fix = suggest(role.dimension, list(by_name))
            where = place if isinstance(written_role, str) else (*place, "dimension")
            error = DIMENSION_UNKNOWN(dimension=shown(role.dimension), fix=fix)
            expansion.refuse(where, error)
            continue
        at = role.at or time
        own = reached.get(at)
        at = own if isinstance(own, str) else at
        if role.at is not None and role.at not in reached:
            expressions.append(((*place, "at"), role.at))
        kind = str(dimension.type)
        if kind != "1" and at is None and not isinstance(fact, PeriodicSnapshotFact):
            expansion.refuse(place, FACT_TIME_MISSING(dimension=shown(dimension.name)))
        way: tuple[MartLink, ...] = ()
        keys: tuple[str, ...] = ()
        if isinstance(dimension, TableDimension):
            keys = dimension.keys
            other = _table(expansion, dimension.table, None)
            if other.name != table.name or role.via:
                way = _way(expansion, table.name, other.name, role.via, place)
        yield RoleQuery(
            name=role.as_ or dimension.name,
            dimension=f"{schema}.{expansion.mart.prefix}{dimension.name}",
            key=key_of(dimension),
            keys=keys,
            path=way,
            type=kind,
            at=at if kind != "1" else None,
        )


def _refuse_clashes(expansion: _Expansion, names: Iterable[tuple[str, NodePath]]) -> None:
    """Note each column that has the name of one before it."""
    seen: set[str] = set()
    for name, path in names:
        if folded(name) in seen:
            error = MART_NAME_TAKEN(
                what="a column called", name=shown(name), fix="give one of them another name"
            )
            expansion.refuse(path, error)
        seen.add(folded(name))


def _made(
    one: AnyDimension | AnyFact,
    keys: Sequence[str],
    path: NodePath,
    sql: str,
    expressions: Iterable[tuple[NodePath, str]],
    *,
    reads_own: bool,
    valid: tuple[str, str] | None = None,
) -> _Made:
    settings = written(one, SAME_SETTINGS[1:])
    # Not checked again: the text may be longer than one that a person writes.
    dataset = DerivedDataset.model_construct(name=one.name, sql=sql, keys=tuple(keys), **settings)
    query = DerivedQuery(
        path=tuple(path),
        text=sql,
        incremental=one.incremental,
        expressions=tuple((tuple(place), text) for place, text in expressions),
        reads_own=reads_own,
        valid=valid,
    )
    return _Made(dataset, query)


def _constant(value: str | float) -> str:
    """A value as Spark SQL; a text that a column of another type cannot hold fails when it runs."""
    if isinstance(value, bool):
        return str(value).lower()
    return literal(value) if isinstance(value, str) else str(value)
