"""Values that follow a record through a change of its key, as SQL.

A change of key arrives as delete(old) and insert(new). Columns that the source left out of the
insert (unchanged TOAST) keep the value of the old key. So the events of one record can change
another record, transitively; an apply runs these statements in rounds.
"""

from __future__ import annotations

from polynya.lake.fold.columns import EVENT_HEADERS, STORED_NAMES
from polynya.lake.fold.fold import fold, with_clause
from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import SEQUENCE, STORED_SEQUENCE, is_unsent, joined, key_text, within
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import literal, quote
from polynya.model.types import Primitive

#: Whether an event changed a key and takes values from the record that it was.
IS_LINK = "__former IS NOT NULL AND coalesce(size(__unsent), 0) > 0"


def with_former_keys(shape: Shape, touched: str, events: str) -> str:
    """The touched records and the former keys that events refer to, with `__oldest`."""
    former = ", ".join(
        f"{_typed(shape, key, index)} AS {quote(key)}" for index, key in enumerate(shape.keys)
    )
    needed = f"SELECT {former}, {SEQUENCE} AS __oldest FROM {events} WHERE {IS_LINK}"
    return _oldest_of(shape, f"SELECT * FROM {touched} UNION ALL {needed}")


def stored_links(shape: Shape, table: str) -> str:
    """Stored versions that changed a key: the new key, `__former` and `__seq`."""
    return (
        f"SELECT {shape.key_list()}, {h.OLD_KEY} AS __former, {STORED_SEQUENCE} AS __seq "
        f"FROM {table} WHERE {h.OLD_KEY} IS NOT NULL "
        f"AND {within(Partition.CURRENT, Partition.PRIOR)}"
    )


def new_heirs(shape: Shape, links: str, linked: str) -> str:
    """Records that took values from a known one and are not known themselves, or only later."""
    heirs = (
        f"SELECT {shape.key_list('l')}, min(l.__seq) AS __oldest FROM {links} l "
        f"JOIN (SELECT {key_text(shape)} AS __key, __oldest FROM {linked}) t "
        f"ON l.__former = t.__key AND l.__seq >= t.__oldest GROUP BY {shape.key_list('l')}"
    )
    return (
        f"SELECT n.* FROM ({heirs}) n LEFT ANTI JOIN {linked} k "
        f"ON {shape.key_match('n', 'k')} AND k.__oldest <= n.__oldest"
    )


def both(shape: Shape, linked: str, new: str) -> str:
    """The records of both relations."""
    return _oldest_of(shape, f"SELECT * FROM {linked} UNION ALL SELECT * FROM {new}")


def _oldest_of(shape: Shape, rows: str) -> str:
    keys = shape.key_list()
    return f"SELECT {keys}, min(__oldest) AS __oldest FROM ({rows}) GROUP BY {keys}"


def _typed(shape: Shape, key: str, index: int) -> str:
    """One column of a former key, out of its text (see `sql.key_text`)."""
    text = f"from_json(__former, 'array<string>')[{index}]"
    if shape.columns[key] == Primitive("binary"):
        return f"unhex({text})"
    return f"CAST({text} AS {shape.type_of(key)})"


def values_to_carry(shape: Shape, events: str, truncates: str | None) -> str:
    """For each event that changed a key (`__key`, `__seq`) the values of its former key then."""
    values = ", ".join(f"{literal(name)}, {quote(name)}" for name in shape.values)
    states = (
        f"SELECT {key_text(shape)} AS __key, __seq, named_struct({values}) AS __values "
        "FROM folded WHERE NOT __gone"
    )
    changed = (
        f"SELECT {key_text(shape)} AS __key, __former, {SEQUENCE} AS __seq "
        f"FROM {events} WHERE {IS_LINK}"
    )
    return (
        f"{with_clause(fold(shape, events, truncates=truncates))} "
        "SELECT c.__key, c.__seq, max_by(s.__values, s.__seq) AS __values "
        f"FROM (SELECT DISTINCT * FROM ({changed})) c JOIN ({states}) s "
        "ON s.__key = c.__former AND s.__seq <= c.__seq GROUP BY c.__key, c.__seq"
    )


def with_values(shape: Shape, events: str, carried: str) -> str:
    """The events, those that changed a key with the values that `carried` holds for them."""
    columns = ", ".join(
        [
            *(_carried_column(shape, name) for name in shape.data),
            *EVENT_HEADERS,
            f"{_stored_place(shape)} AS __stored",
        ]
    )
    keyed = f"SELECT *, {key_text(shape)} AS __key, {SEQUENCE} AS __seq FROM {events}"
    return (
        f"SELECT {columns} FROM ({keyed}) e "
        f"LEFT JOIN {carried} c ON {IS_LINK} AND c.__key = e.__key AND c.__seq = e.__seq"
    )


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
    changed = joined(
        (
            f"NOT ({comparable(_carried_value(shape, name), shape.columns[name])} <=> "
            f"{comparable(f'e.{quote(name)}', shape.columns[name])})"
            for name in shape.values
        ),
        "OR",
    )
    fields = ", ".join(
        f"'{name}', " + ("CAST(NULL AS STRING)" if name == "op" else f"e.__stored.`{name}`")
        for name in STORED_NAMES
    )
    moved = f"e.__stored IS NOT NULL AND ({changed or 'false'})"
    return f"IF({moved}, named_struct({fields}), e.__stored)"
