"""Values that follow a record through a change of its key.

A change of key arrives as delete(old) and insert(new); columns that the source left out of the
insert (unchanged TOAST) keep the value that the old key had. So one record's events can change
another record, transitively.
"""

from __future__ import annotations

from collections.abc import Callable

from polynya.lake.fold.fold import STORED_FIELDS, fold, with_clause
from polynya.lake.fold.keys import key_text
from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import literal
from polynya.lake.fold.unsent import is_unsent
from polynya.lake.spark.api import DataFrame
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote
from polynya.model.datatypes import Primitive

Sql = Callable[[str], DataFrame]
View = Callable[[DataFrame], str]

_SEQUENCE = "concat(__ci, coalesce(__tail, ''))"
_IS_LINK = "__old IS NOT NULL AND coalesce(size(__unsent), 0) > 0"


def linked_keys(
    sql: Sql, view: View, shape: Shape, *, table: str, touched: str, events: str
) -> DataFrame:
    """Extend the touched records by those on the other end of a change of key.

    `touched` holds the key columns and `__min`, and so does the result. Added are the former keys
    that events refer to (their state at that moment is needed) and the records that took values
    from a touched one later on.
    """
    former = ", ".join(
        f"{_typed(shape, key, index)} AS {quote(key)}" for index, key in enumerate(shape.keys)
    )
    needed = f"SELECT {former}, {_SEQUENCE} AS __min FROM {events} WHERE {_IS_LINK}"
    known = view(sql(_least(shape, f"SELECT * FROM {touched} UNION ALL {needed}")))
    sequence = f"concat({h.CHANGE_IDENTIFIER}, coalesce({h.SEQUENCE_TAIL}, ''))"
    links = view(
        sql(
            f"SELECT {shape.key_list()}, {h.OLD_KEY} AS __old, {sequence} AS __seq FROM {table} "
            f"WHERE {h.OLD_KEY} IS NOT NULL "
            f"AND {h.PARTITION} IN ('{Partition.CURRENT}', '{Partition.PRIOR}')"
        )
    )
    while True:
        heirs = (
            f"SELECT {shape.key_list('l')}, min(l.__seq) AS __min FROM {links} l "
            f"JOIN (SELECT {key_text(shape)} AS __key, __min FROM {known}) t "
            f"ON l.__old = t.__key AND l.__seq >= t.__min GROUP BY {shape.key_list('l')}"
        )
        new = sql(
            f"SELECT n.* FROM ({heirs}) n LEFT ANTI JOIN {known} k "
            f"ON {shape.key_match('n', 'k')} AND k.__min <= n.__min"
        )
        if new.isEmpty():
            return sql(f"SELECT * FROM {known}")
        known = view(
            sql(
                _least(shape, f"SELECT * FROM {known} UNION ALL SELECT * FROM {view(new)}")
            ).localCheckpoint()
        )


def _least(shape: Shape, rows: str) -> str:
    return (
        f"SELECT {shape.key_list()}, min(__min) AS __min FROM ({rows}) GROUP BY {shape.key_list()}"
    )


def _typed(shape: Shape, key: str, index: int) -> str:
    """One column of a former key, out of its text (see `keys.key_text`)."""
    text = f"from_json(__old, 'array<string>')[{index}]"
    if shape.columns[key] == Primitive("binary"):
        return f"unhex({text})"
    return f"CAST({text} AS {shape.type_of(key)})"


def with_carried_values(
    sql: Sql, view: View, shape: Shape, frame: DataFrame, *, truncates: str | None = None
) -> DataFrame:
    """Put the carried values into the events of `frame` that changed a key.

    A chain of changes inside one batch (a→b→c) needs as many rounds as it is long; nearly always
    that is one.
    """
    links = frame.where(_IS_LINK).selectExpr(
        f"{key_text(shape)} AS key", "__old", f"{_SEQUENCE} AS seq"
    )
    for _ in range(
        _longest_chain([(row["key"], row["__old"], row["seq"]) for row in links.collect()])
    ):
        source = view(frame)
        steps = fold(shape, source, truncates=truncates)
        values = ", ".join(f"{literal(name)}, {quote(name)}" for name in shape.values)
        states = (
            f"SELECT {key_text(shape)} AS __key, __seq, named_struct({values}) AS __values "
            "FROM folded WHERE NOT __gone"
        )
        changed = (
            f"SELECT {key_text(shape)} AS __new, __old AS __former, {_SEQUENCE} AS __at "
            f"FROM {source} WHERE {_IS_LINK}"
        )
        found = (
            f"{with_clause(steps)} SELECT c.__new, c.__at, max_by(s.__values, s.__seq) AS __values "
            f"FROM (SELECT DISTINCT * FROM ({changed})) c JOIN ({states}) s "
            "ON s.__key = c.__former AND s.__seq <= c.__at GROUP BY c.__new, c.__at"
        )
        carried = view(sql(found))
        columns = ", ".join(_carried_column(shape, name) for name in shape.data)
        rest = f"__ci, __tail, __pos, __op, __ts, __unsent, __old, {_stored_place(shape)} AS __s"
        frame = sql(
            f"SELECT {columns}, {rest} "
            f"FROM (SELECT *, {key_text(shape)} AS __key, {_SEQUENCE} AS __seq FROM {source}) e "
            f"LEFT JOIN {carried} c ON {_IS_LINK} AND c.__new = e.__key AND c.__at = e.__seq"
        ).localCheckpoint()
    return frame


def _carried_column(shape: Shape, name: str) -> str:
    if name in shape.keys:
        return f"e.{quote(name)}"
    return f"{_carried_value(shape, name)} AS {quote(name)}"


def _carried_value(shape: Shape, name: str) -> str:
    missing = f"c.__values IS NOT NULL AND {is_unsent(shape, name, 'e')}"
    return f"IF({missing}, c.__values.{quote(name)}, e.{quote(name)})"


def _stored_place(shape: Shape) -> str:
    """Where the version is stored.

    A version whose values change here must not pass for one that is stored as it is.
    """
    changed = " OR ".join(
        f"NOT ({comparable(_carried_value(shape, name), shape.columns[name])} <=> "
        f"{comparable(f'e.{quote(name)}', shape.columns[name])})"
        for name in shape.values
    )
    fields = ", ".join(
        f"'{name}', " + ("CAST(NULL AS STRING)" if name == "op" else f"e.__s.`{name}`")
        for name in (*STORED_FIELDS, "file", "pos")
    )
    return f"IF(e.__s IS NOT NULL AND ({changed or 'false'}), named_struct({fields}), e.__s)"


def _longest_chain(links: list[tuple[str, str, str]]) -> int:
    """Number of links (new key, old key, sequence) in the longest chain of changes of key."""
    reached: dict[str, int] = {}
    for new, old, _ in sorted(links, key=lambda link: link[2]):
        reached[new] = max(reached.get(new, 0), 1 + reached.get(old, 0))
    return max(reached.values(), default=0)
