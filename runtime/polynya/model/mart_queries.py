"""The SQL of dimensions and facts of a data mart: what a person would write, and can read.

Every function returns one `SELECT` in Spark's SQL that depends on its tables alone. Names of its
tables are as queries call them, `schema.table`, and `schema.table__history` for all versions. Only
names of columns that the mart declares are in it, so that the text is known before any table is.

Surrogate keys are computed, not counted: 128 bits of the SHA-256 of the natural key, and for type 2
of the time at which the version began. So they are equal after each step, rebuild and recreation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from polynya.model.names import folded, literal, quote, quote_path

#: Key of the unknown member of a dimension, and of the unknown day.
UNKNOWN_KEY: Final = "0" * 32
UNKNOWN_DAY: Final = -1
#: Begin of the first version of a member, and end of one that is valid still.
BEGIN_OF_TIME: Final = "TIMESTAMP '1000-01-01 00:00:00'"
END_OF_TIME: Final = "TIMESTAMP '9999-12-31 00:00:00'"
VERSION_COLUMNS: Final = ("valid_from", "valid_to", "is_current")
PERIOD_COLUMNS: Final = ("period_start", "period_end")
#: Columns of a dimension of dates, after its key.
DATE_COLUMNS: Final[Mapping[str, str]] = {
    "date": "day",
    "year": "year(day)",
    "quarter": "quarter(day)",
    "month": "month(day)",
    "month_name": "element_at(array('January', 'February', 'March', 'April', 'May', 'June', "
    "'July', 'August', 'September', 'October', 'November', 'December'), month(day))",
    "day": "day(day)",
    "day_of_year": "dayofyear(day)",
    "day_of_week": "weekday(day) + 1",
    "day_name": "element_at(array('Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', "
    "'Saturday', 'Sunday'), weekday(day) + 1)",
    "is_weekend": "weekday(day) >= 5",
    "iso_week": "weekofyear(day)",
    "iso_year": "year(date_add(day, 3 - weekday(day)))",
}
#: Argument of `date_trunc`, and step, of each period.
_PERIODS: Final = {
    "day": ("DAY", "INTERVAL 1 DAY"),
    "week": ("WEEK", "INTERVAL 7 DAY"),
    "month": ("MONTH", "INTERVAL 1 MONTH"),
    "quarter": ("QUARTER", "INTERVAL 3 MONTH"),
    "year": ("YEAR", "INTERVAL 12 MONTH"),
}
_ENDS: Final = f"coalesce(hdr__to_timestamp, {END_OF_TIME})"
#: Versions that begin and end at the same moment have never been valid.
_LASTS: Final = f"hdr__from_timestamp < {_ENDS}"


@dataclass(frozen=True, slots=True)
class MartLink:
    """A relationship: `on` has columns of the child, each with the key column of the parent."""

    name: str
    child: str
    parent: str
    history: str
    on: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SelectedColumn:
    """A column of a result: SQL over columns of the own table, or a column at the end of a path."""

    name: str
    sql: str
    path: tuple[MartLink, ...] = ()


@dataclass(frozen=True, slots=True)
class DimensionQuery:
    """What the query of a dimension is made of; `table` and `history` are names in queries."""

    key: str
    table: str
    history: str
    keys: tuple[str, ...]
    columns: tuple[SelectedColumn, ...]
    where: str | None
    unknown: Mapping[str, str]
    extends_first: bool


@dataclass(frozen=True, slots=True)
class RoleQuery:
    """A dimension in a fact: `name` is its role, `keys` its natural key.

    `path` leads from the table of the fact to that of the dimension; empty for the table itself.
    `at` is SQL over the own table, or None for what the fact has by default.
    """

    name: str
    dimension: str
    key: str
    keys: tuple[str, ...]
    path: tuple[MartLink, ...]
    type: str
    at: str | None


@dataclass(frozen=True, slots=True)
class MilestoneQuery:
    """A time in a related table: the first (`min`) or last (`max`) `column` of rows of `link`."""

    name: str
    link: MartLink
    column: str
    function: str


@dataclass(frozen=True, slots=True)
class FactQuery:
    """What the query of a fact is made of.

    `period` is that of a periodic snapshot. `milestones` and `lags` are those of an accumulating
    one; milestones of the own table are among the columns.
    """

    table: str
    history: str
    keys: tuple[str, ...]
    columns: tuple[SelectedColumn, ...]
    measures: tuple[SelectedColumn, ...]
    roles: tuple[RoleQuery, ...]
    where: str | None
    period: str | None = None
    milestones: tuple[MilestoneQuery, ...] = ()
    lags: tuple[tuple[str, str, str], ...] = ()


class _Names:
    """Names that nothing else of a query has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {folded(name) for name in taken}

    def free(self, wanted: str) -> str:
        """The name, with a number if it is taken."""
        name, number = wanted, 1
        while folded(name) in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(folded(name))
        return name


class _OwnColumns:
    """The select list over the own table: columns of the result, and those that joins need."""

    def __init__(self, shown: Sequence[SelectedColumn], names: _Names) -> None:
        self._names = names
        self._items = {column.name: column.sql for column in shown if not column.path}
        self._by_sql = {sql: name for name, sql in self._items.items()}

    def named(self, sql: str, wanted: str) -> str:
        """The name of the column with this SQL, which is added if nothing has it."""
        if sql not in self._by_sql:
            name = self._names.free(wanted)
            self._items[name], self._by_sql[sql] = sql, name
        return self._by_sql[sql]

    @property
    def items(self) -> list[str]:
        """The select list."""
        return [_item(sql, name) for name, sql in self._items.items()]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._items)


def dimension_sql(query: DimensionQuery) -> str:
    """A dimension of type 1: the present values, and the unknown member."""
    shown = [*(_own(key) for key in query.keys), *query.columns]
    names = _Names([query.key, *(column.name for column in shown)])
    own = _OwnColumns(shown, names)
    joins, aliases = _joins([column.path for column in query.columns], own, _Names("t"))
    key = _surrogate([f"t.{quote(name)}" for name in query.keys])
    items = [_item(key, query.key), *(_selected(column, aliases) for column in shown)]
    return "\n".join(
        [
            "WITH members AS (",
            *_indented(_select(own.items, query.table, query.where)),
            ")",
            *_select(items, "members AS t", None, quoted=False),
            *joins,
            "UNION ALL",
            *_unknown(query, shown, []),
        ]
    )


@dataclass(frozen=True, slots=True)
class _Span:
    """Names of columns: when a version begins and ends, and whether it is that of a deletion."""

    begins: str
    ends: str
    gone: str


def versions_sql(query: DimensionQuery) -> str:
    """A dimension of type 2: a row for each version of its columns, and the unknown member.

    Columns of related tables have versions of their own: a member has a version for each stretch of
    time in which none of its columns changes. Neighbours that are equal are one version.
    """
    shown = [*(_own(key) for key in query.keys), *query.columns]
    names = _Names([query.key, *VERSION_COLUMNS, *(column.name for column in shown)])
    span = _Span(*(names.free(f"version_{one}") for one in ("begins", "ends", "is_gone")))
    begins, ends, gone = span.begins, span.ends, span.gone
    steps = _member_versions(query, _OwnColumns(shown, names), names, span)
    following, first = names.free("version_next"), names.free("version_first")
    repeats = names.free("version_repeats")
    of_member = f"OVER (PARTITION BY {', '.join(map(quote, query.keys))})"
    over = f"{of_member[:-1]} ORDER BY {quote(begins)})"
    compared = [*(column.name for column in query.columns), gone]
    same = [f"{quote(name)} <=> lag({quote(name)}) {over}" for name in compared]
    # Neighbours only: rows that overlap stay apart, so that their keys tell of them.
    same.append(f"{quote(begins)} <=> lag({quote(ends)}) {over}")
    steps += [
        (
            "marked",
            _whole(steps[-1][0], "\n    AND ".join(same), repeats, None),
        ),
        (
            "runs",
            _whole("marked", f"lead({quote(begins)}) {over}", following,
                   f"NOT coalesce({quote(repeats)}, false)"),
        ),
        (
            "versions",
            _whole("runs", f"{quote(begins)} = min({quote(begins)}) {of_member}", first,
                   f"NOT {quote(gone)}"),
        ),
    ]  # fmt: skip
    version = f"unix_micros({quote(begins)})"
    start = quote(begins)
    if query.extends_first:
        start = f"CASE WHEN {quote(first)} THEN {BEGIN_OF_TIME} ELSE {quote(begins)} END"
    items = [
        _item(_surrogate([*map(quote, query.keys), version]), query.key),
        *(quote(column.name) for column in shown),
        _item(start, VERSION_COLUMNS[0]),
        _item(f"coalesce({quote(following)}, {END_OF_TIME})", VERSION_COLUMNS[1]),
        _item(f"{quote(following)} IS NULL", VERSION_COLUMNS[2]),
    ]
    unknown = [
        _item(sql, name)
        for name, sql in zip(VERSION_COLUMNS, (BEGIN_OF_TIME, END_OF_TIME, "true"), strict=True)
    ]
    return "\n".join(
        [
            *_with(steps),
            *_select(items, "versions", None, quoted=False),
            "UNION ALL",
            *_unknown(query, shown, unknown),
        ]
    )


def _member_versions(
    query: DimensionQuery, own: _OwnColumns, names: _Names, span: _Span
) -> list[tuple[str, list[str]]]:
    """Steps of which the last has the columns of members and related tables, by their time."""
    # Columns of related tables: the path to the table, its column, and the name once it is joined.
    values = [(one.path, one.sql, one.name) for one in query.columns if one.path]
    paths = _prefixes(column.path for column in query.columns)
    links: dict[tuple[MartLink, ...], list[str]] = {}
    for path in paths:
        before, children = path[:-1], [child for child, _ in path[-1].on]
        if before:
            links[path] = [names.free(f"link_{child}") for child in children]
            found = zip(children, links[path], strict=True)
            values += [(before, quote(child), name) for child, name in found]
        else:
            links[path] = [own.named(quote(child), f"link_{child}") for child in children]
    deleted = "hdr__deleted"
    if query.where is not None:
        deleted = f"hdr__deleted OR NOT coalesce({query.where}, false)"
    header = [
        _item("hdr__from_timestamp", span.begins),
        _item(_ENDS, span.ends),
        _item(deleted, span.gone),
    ]
    members = _select([*own.items, *header], query.history, _LASTS)
    steps = [(names.free("members"), members)]
    columns = own.names
    for path in paths:
        added = [(sql, name) for end, sql, name in values if end == path]
        related = names.free(f"{path[-1].name}_versions")
        items = [
            *(f"t.{quote(name)}" for name in columns),
            *(f"r.{quote(name)}" for _, name in added),
        ]
        joined = _overlapping(items, (steps[-1][0], related), links[path], span)
        steps.append((related, _related(path[-1], added, extends_first=query.extends_first)))
        steps.append((names.free(f"with_{path[-1].name}"), joined))
        columns += [name for _, name in added]
    return steps


def _overlapping(
    items: Sequence[str], tables: tuple[str, str], links: Sequence[str], span: _Span
) -> list[str]:
    """Versions of members joined with those of a related table, each for the time of both."""
    begins, ends = quote(span.begins), quote(span.ends)
    both = [
        f"greatest(t.{begins}, r.hdr__begins) AS {begins}",
        f"least(t.{ends}, r.hdr__ends) AS {ends}",
        f"t.{quote(span.gone)}",
    ]
    keys = [
        f"t.{quote(name)} = r.{quote(f'hdr__key_{number}')}" for number, name in enumerate(links, 1)
    ]
    overlap = [f"t.{begins} < r.hdr__ends", f"r.hdr__begins < t.{ends}"]
    rows = _select([*items, *both], f"{tables[0]} AS t", None, quoted=False)
    return [*rows, f"LEFT JOIN {tables[1]} AS r", *_on([*keys, *overlap])]


def _whole(table: str, sql: str, name: str, where: str | None) -> list[str]:
    """All columns of a step, and one more."""
    return _select(["*", f"{sql} AS {quote(name)}"], table, where, quoted=False)


def dates_sql(key: str, first: date, last: date) -> str:
    """A dimension of days, and the unknown day."""
    number = "year(day) * 10000 + month(day) * 100 + day(day)"
    items = [_item(number, key), *(_item(sql, name) for name, sql in DATE_COLUMNS.items())]
    nulls = [_item("NULL", name) for name in DATE_COLUMNS]
    days = f"sequence(DATE '{first}', DATE '{last}', INTERVAL 1 DAY)"
    return "\n".join(
        [
            "WITH days AS (",
            f"  SELECT explode({days}) AS day",
            ")",
            *_select(items, "days", None, quoted=False),
            "UNION ALL",
            "SELECT",
            *_listed([_item(str(UNKNOWN_DAY), key), *nulls]),
        ]
    )


def fact_sql(query: FactQuery) -> str:
    """A fact of any kind: its columns, a key for each of its dimensions, and its measures."""
    shown = [*(_own(key) for key in query.keys), *query.columns, *query.measures]
    outputs = [
        *(PERIOD_COLUMNS if query.period else ()),
        *(column.name for column in shown),
        *(f"{role.name}_key" for role in query.roles),
        *(milestone.name for milestone in query.milestones),
        *(name for name, _, _ in query.lags),
    ]
    names = _Names(outputs)
    own = _OwnColumns(shown, names)
    reached = {milestone.name for milestone in query.milestones}
    times = [_time(role, own, reached) for role in query.roles]
    paths = [*(column.path for column in query.columns), *map(_read_path, query.roles)]
    for role in query.roles:
        if not _read_path(role):
            for column in _child_columns(role):
                own.named(quote(column), f"link_{column}")
    milestones = [
        [own.named(quote(parent), f"link_{parent}") for _, parent in milestone.link.on]
        for milestone in query.milestones
    ]
    relations = _Names("t")
    joins, aliases = _joins(paths, own, relations)
    limit = names.free("period_limit")
    steps = _fact_steps(query, own, names, limit)
    if query.milestones:
        steps = _with_milestones(steps, query.milestones, milestones)
    source = steps[-1][0]
    items = [f"t.{quote(name)}" for name in (PERIOD_COLUMNS if query.period else ())]
    items += [
        _selected(column, aliases) for column in shown[: len(query.keys) + len(query.columns)]
    ]
    roles = []
    for role, time in zip(query.roles, times, strict=True):
        alias = quote(relations.free(role.name))
        unknown = str(UNKNOWN_DAY) if role.type == "date" else literal(UNKNOWN_KEY)
        items.append(_item(f"coalesce({alias}.{quote(role.key)}, {unknown})", f"{role.name}_key"))
        on = [f"{alias}.{quote(key)} = {sql}" for key, sql in _natural(role, own, aliases)]
        on += _times(role, alias, time, limit)
        roles += [f"LEFT JOIN {_table(role.dimension)} AS {alias}", *_on(on)]
    items += [f"t.{quote(milestone.name)}" for milestone in query.milestones]
    items += [f"t.{quote(measure.name)}" for measure in query.measures]
    for name, begin, end in query.lags:
        days = f"datediff(CAST(t.{quote(end)} AS DATE), CAST(t.{quote(begin)} AS DATE))"
        items.append(_item(days, name))
    return "\n".join(
        [*_with(steps), *_select(items, f"{source} AS t", None, quoted=False), *joins, *roles]
    )


def _fact_steps(
    query: FactQuery, own: _OwnColumns, names: _Names, limit: str
) -> list[tuple[str, list[str]]]:
    """The rows of a fact before anything is joined to them; the last step has them all."""
    if query.period is None:
        return [("facts", _select(own.items, query.table, query.where))]
    unit, step = _PERIODS[query.period]
    begins, ends = names.free("version_begins"), names.free("version_ends")
    alive = "NOT hdr__deleted" if query.where is None else f"NOT hdr__deleted AND ({query.where})"
    header = [_item("hdr__from_timestamp", begins), _item(_ENDS, ends)]
    periods = "explode(sequence(first_period, last_period, " + step + ")) AS period_start"
    return [
        ("versions", _select([*own.items, *header], query.history, alive)),
        (
            "bounds",
            _select(
                [
                    f"CAST(date_trunc('{unit}', {function}(hdr__from_timestamp)) AS DATE) AS {name}"
                    for function, name in (("min", "first_period"), ("max", "last_period"))
                ],
                query.history,
                None,
            ),
        ),
        ("periods", [f"SELECT {periods}", "FROM bounds"]),
        (
            "limits",
            ["SELECT", "  period_start,",
             f"  CAST(period_start + {step} AS TIMESTAMP) AS period_limit", "FROM periods"],
        ),
        (
            "facts",
            [
                "SELECT",
                *_listed(
                    [
                        "p.period_start",
                        "date_sub(CAST(p.period_limit AS DATE), 1) AS period_end",
                        f"p.period_limit AS {quote(limit)}",
                        *(f"v.{quote(name)}" for name in own.names),
                    ]
                ),
                "FROM limits AS p",
                "JOIN versions AS v",
                f"  ON v.{quote(begins)} < p.period_limit",
                f"  AND v.{quote(ends)} >= p.period_limit",
            ],
        ),
    ]  # fmt: skip


def _time(role: RoleQuery, own: _OwnColumns, reached: set[str]) -> str | None:
    """The column with the time of a role; None for a dimension of present values."""
    if role.type == "1":
        return None
    if role.at is None:
        return PERIOD_COLUMNS[0] if role.type == "date" else None
    if role.at in reached:
        return role.at
    return own.named(role.at, "event_time")


def _natural(
    role: RoleQuery, own: _OwnColumns, aliases: Mapping[tuple[MartLink, ...], str]
) -> list[tuple[str, str]]:
    """The natural key of a dimension, each column with what a fact has for it."""
    if role.type == "date":
        return []
    path, columns = _read_path(role), _child_columns(role)
    if path:
        return list(
            zip(role.keys, (f"{aliases[path]}.{quote(one)}" for one in columns), strict=True)
        )
    linked = (own.named(quote(one), f"link_{one}") for one in columns)
    return [(key, f"t.{quote(name)}") for key, name in zip(role.keys, linked, strict=True)]


def _times(role: RoleQuery, alias: str, time: str | None, limit: str) -> list[str]:
    """The conditions on the time of a role."""
    if role.type == "1":
        return []
    if time is None:
        # As it was when the period ended.
        return [f"{alias}.valid_from < t.{quote(limit)}", f"{alias}.valid_to >= t.{quote(limit)}"]
    if role.type == "date":
        return [f"{alias}.`date` = CAST(t.{quote(time)} AS DATE)"]
    return [f"{alias}.valid_from <= t.{quote(time)}", f"{alias}.valid_to > t.{quote(time)}"]


def _ends_at_keys(role: RoleQuery) -> bool:
    """Whether the foreign key of the last relationship is the natural key of the dimension."""
    return bool(role.path) and {folded(parent) for _, parent in role.path[-1].on} == {
        folded(key) for key in role.keys
    }


def _read_path(role: RoleQuery) -> tuple[MartLink, ...]:
    """The tables that are read to find the natural key; the table of the dimension seldom is."""
    return role.path[:-1] if _ends_at_keys(role) else role.path


def _child_columns(role: RoleQuery) -> list[str]:
    """The columns that have the natural key at the end of what is read, in the order of `keys`."""
    if not _ends_at_keys(role):
        return list(role.keys)
    by_key = {folded(parent): child for child, parent in role.path[-1].on}
    return [by_key[folded(key)] for key in role.keys]


def _with_milestones(
    steps: Sequence[tuple[str, list[str]]],
    milestones: Sequence[MilestoneQuery],
    links: Sequence[Sequence[str]],
) -> list[tuple[str, list[str]]]:
    """The steps with times of related tables; `links` are the columns that find each of them."""
    items, joins, times = ["t.*"], [], []
    for number, (milestone, columns) in enumerate(zip(milestones, links, strict=True), 1):
        times.append((f"times_{number}", _reached(milestone)))
        items.append(f"m{number}.reached AS {quote(milestone.name)}")
        on = [
            f"t.{quote(column)} = m{number}.{quote(child)}"
            for column, (child, _) in zip(columns, milestone.link.on, strict=True)
        ]
        joins += [f"LEFT JOIN times_{number} AS m{number}", *_on(on)]
    rows = _select(items, f"{steps[-1][0]} AS t", None, quoted=False)
    return [*times, *steps, ("progress", [*rows, *joins])]


def _reached(milestone: MilestoneQuery) -> list[str]:
    """The time of each row that a milestone's table tells of, by its foreign key."""
    children = [quote(child) for child, _ in milestone.link.on]
    time = f"{milestone.function}({quote(milestone.column)}) AS reached"
    grouped = f"GROUP BY {', '.join(children)}"
    return [*_select([*children, time], milestone.link.child, None), grouped]


def _related(
    link: MartLink, values: Sequence[tuple[str, str]], *, extends_first: bool
) -> list[str]:
    """The versions of a related table, without gaps: a deleted row has no values."""
    keys = [_item(quote(parent), f"hdr__key_{n}") for n, (_, parent) in enumerate(link.on, 1)]
    parents = ", ".join(quote(parent) for _, parent in link.on)
    begins = "hdr__from_timestamp"
    if extends_first:
        first = f"min({begins}) OVER (PARTITION BY {parents})"
        begins = f"CASE WHEN {begins} = {first} THEN {BEGIN_OF_TIME} ELSE {begins} END"
    items = [
        *keys,
        *(_item(f"CASE WHEN NOT hdr__deleted THEN {sql} END", name) for sql, name in values),
        f"{begins} AS hdr__begins",
        f"{_ENDS} AS hdr__ends",
    ]
    rows = _select(items, link.history, _LASTS)
    if extends_first:
        return rows
    gap = [
        *keys,
        *(_item("NULL", name) for _, name in values),
        f"{BEGIN_OF_TIME} AS hdr__begins",
        "min(hdr__from_timestamp) AS hdr__ends",
    ]
    return [*rows, "UNION ALL", *_select(gap, link.history, None), f"GROUP BY {parents}"]


def _joins(
    paths: Iterable[tuple[MartLink, ...]], own: _OwnColumns, relations: _Names
) -> tuple[list[str], dict[tuple[MartLink, ...], str]]:
    """The joins of related tables, and the alias of the table at the end of each path."""
    aliases: dict[tuple[MartLink, ...], str] = {}
    joins = []
    for path in _prefixes(paths):
        link, before = path[-1], path[:-1]
        aliases[path] = alias = quote(relations.free(link.name))
        on = []
        for child, parent in link.on:
            if before:
                found = f"{aliases[before]}.{quote(child)}"
            else:
                found = f"t.{quote(own.named(quote(child), f'link_{child}'))}"
            on.append(f"{alias}.{quote(parent)} = {found}")
        joins += [f"LEFT JOIN {_table(link.parent)} AS {alias}", *_on(on)]
    return joins, aliases


def _prefixes(paths: Iterable[tuple[MartLink, ...]]) -> list[tuple[MartLink, ...]]:
    """All beginnings of the paths, each once and after those that it goes on from."""
    found: dict[tuple[MartLink, ...], None] = {}
    for path in paths:
        for length in range(1, len(path) + 1):
            found.setdefault(path[:length])
    return list(found)


def _own(name: str) -> SelectedColumn:
    return SelectedColumn(name, quote(name))


def _selected(column: SelectedColumn, aliases: Mapping[tuple[MartLink, ...], str]) -> str:
    if not column.path:
        return f"t.{quote(column.name)}"
    return _item(f"{aliases[column.path]}.{column.sql}", column.name)


def _surrogate(parts: Sequence[str]) -> str:
    """32 hex digits of the SHA-256 of the parts, which are told apart by their lengths."""
    texts = [f"CAST({part} AS STRING)" for part in parts]
    text = texts[0]
    if len(texts) > 1:
        told_apart = [f"length({one}), ':', {one}" for one in texts]
        text = f"concat({', '.join(told_apart)})"
    return f"substr(sha2({text}, 256), 1, {len(UNKNOWN_KEY)})"


def _unknown(
    query: DimensionQuery, shown: Sequence[SelectedColumn], more: Sequence[str]
) -> list[str]:
    """The row of the unknown member."""
    given = {folded(name): sql for name, sql in query.unknown.items()}
    values = [_item(given.get(folded(column.name), "NULL"), column.name) for column in shown]
    return ["SELECT", *_listed([_item(literal(UNKNOWN_KEY), query.key), *values, *more])]


def _with(steps: Sequence[tuple[str, list[str]]]) -> list[str]:
    lines = []
    for number, (name, query) in enumerate(steps):
        lines.append(f"{'WITH ' if number == 0 else ''}{name} AS (")
        lines += [*_indented(query), ")," if number < len(steps) - 1 else ")"]
    return lines


def _select(
    items: Sequence[str], table: str, where: str | None, *, quoted: bool = True
) -> list[str]:
    source = _table(table) if quoted else table
    lines = ["SELECT", *_listed(items), f"FROM {source}"]
    return lines if where is None else [*lines, f"WHERE {where}"]


def _listed(items: Sequence[str]) -> list[str]:
    return [f"  {item}{',' if number < len(items) else ''}" for number, item in enumerate(items, 1)]


def _on(conditions: Sequence[str]) -> list[str]:
    first, *more = conditions
    return [f"  ON {first}", *(f"  AND {one}" for one in more)]


def _indented(lines: Iterable[str]) -> list[str]:
    # Not the lines inside of a text: they may belong to a literal.
    return [f"  {line}" for line in lines]


def _item(sql: str, name: str) -> str:
    return sql if sql == quote(name) else f"{sql} AS {quote(name)}"


def _table(name: str) -> str:
    return quote_path(*name.split("."))
