"""SQL fragments that copy, fold and views share: sequences, keys, conversions, unsent columns.

Unsent columns are those that an event did not send, as `hdr__unsent` lists them. The list may be
inverted: with `ALL_BUT` in it, it names the columns that were sent, so that it also holds for
columns that only later events know. A column is listed by its name. Renaming changes no stored row,
so a renamed column is still found by its former names; a new column whose name already stands for
another one is listed under a text of its own.

A look is a row that a source read at a place in the order of its events; it changes nothing. A load
runs next to the stream, and a load that starts later or continues after a kill lands behind changes
that are older than its rows. From a look follows more than the row that it shows, in any order of
arrival, because a look shows the result of all events before its place:

- A column that the events before it did not send had the value that the look shows, back to the
  newest event that sent it.
- A look that shows only what is already known makes no version.

A conversion gives the same value in another type, or NULL. It reads text as a declared column
would, in the spellings that Spark and the readers agree on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal

from polynya.lake.fold.shape import Shape, comparable
from polynya.model import headers as h
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.headers import ALL_BUT, HEADER_NAMES, LOADED, READ, Partition
from polynya.model.names import literal, quote
from polynya.model.promotion import storage_type
from polynya.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Decimal,
    MapType,
    Primitive,
    Struct,
    Void,
)


def sequence(identifier: str, tail: str) -> str:
    """The place of an event in the order of events, as one text."""
    return f"concat({identifier}, coalesce({tail}, ''))"


#: Sequence of an event as landing and the fold know it.
SEQUENCE = sequence("__ci", "__tail")
#: Sequence of a row of the internal table.
STORED_SEQUENCE = sequence(h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL)


#: Conditions that are joined side by side. Spark makes a tree of them that is as deep as they are
#: many, and walks it by recursion: some fifteen hundred end its stack.
_SIDE_BY_SIDE: Final = 16


def joined(conditions: Iterable[str], operator: Literal["AND", "OR"]) -> str:
    """Conditions joined by one operator, those of a wide table in parentheses that keep it flat."""
    terms = list(conditions)
    while len(terms) > _SIDE_BY_SIDE:
        groups = (
            terms[start : start + _SIDE_BY_SIDE] for start in range(0, len(terms), _SIDE_BY_SIDE)
        )
        terms = [f"({f' {operator} '.join(group)})" for group in groups]
    return f" {operator} ".join(terms)


def timestamp_literal(moment: datetime) -> str:
    """SQL literal of a UTC time with microseconds."""
    return f"TIMESTAMP '{moment.astimezone(UTC).isoformat(sep=' ')}'"


def is_delete(operation: str = h.OPERATION) -> str:
    """Condition that an operation is a delete, captured or found by a reload."""
    return f"{operation} IN ('D', 'd')"


def live_current(shape: Shape) -> str:
    """Condition that a row of the internal table is a record that Current shows."""
    current = within(Partition.CURRENT)
    if shape.soft_delete or not shape.holds_deletes:
        return current
    return f"{current} AND NOT coalesce({is_delete()}, false)"


#: A delete that no version follows. Without history the end of a version is not known.
IS_OPEN_DELETE = f"{is_delete()} AND {h.TO_TIMESTAMP} IS NULL"


def within(*partitions: Partition) -> str:
    """Condition that a row of the internal table is in one of these partitions."""
    if len(partitions) == 1:
        return f"{h.PARTITION} = '{partitions[0]}'"
    listed = ", ".join(f"'{partition}'" for partition in partitions)
    return f"{h.PARTITION} IN ({listed})"


def table_row(
    shape: Shape, headers: Mapping[str, str], data: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Column → expression for a row of the internal table, in the order of its columns.

    `headers` are the header columns that the row has, all others are NULL. `data` are the data
    columns, by default as they are.
    """
    nothing = {header.name: f"CAST(NULL AS {header.type})" for header in h.HEADERS}
    if data is None:
        data = {name: quote(name) for name in shape.data}
    return {**nothing, **headers, **data}


def selected(columns: Mapping[str, str]) -> str:
    """Select list of expressions by the name of their column."""
    return ", ".join(f"{expression} AS {quote(name)}" for name, expression in columns.items())


#: column → texts that stand for it, the last one for new events; just its name when it is missing
Texts = Mapping[str, Iterable[str]]


def is_unsent(shape: Shape, column: str, alias: str = "") -> str:
    """Condition that the event at `alias` did not send a column."""
    unsent = f"{alias}.__unsent" if alias else "__unsent"
    conditions = [
        f"array_contains({unsent}, {literal(text)})"
        for text in shape.unsent_texts.get(column, (column,))
    ]
    return f"coalesce(({' OR '.join(conditions)}) <> array_contains({unsent}, '{ALL_BUT}'), false)"


def as_written(shape: Shape, names: str) -> str:
    """An array of column names as the array that is stored."""
    pairs = [
        f"{literal(column)}, {literal(texts[-1])}"
        for column, texts in shape.unsent_texts.items()
        if texts[-1] != column
    ]
    if not pairs:
        return names
    return f"transform({names}, n -> coalesce(element_at(map({', '.join(pairs)}), n), n))"


def ignored_nulls(dataset: ResolvedDataset) -> tuple[str, ...]:
    """Columns that an update may leave out as NULL, as a list of columns that were not sent."""
    ignored = dataset.events.ignore_null_updates
    if isinstance(ignored, bool):
        return (ALL_BUT,) if ignored else ()
    return ignored


def left_out(dataset: ResolvedDataset, shape: Shape, present: set[str]) -> str:
    """SQL of what is stored for a landed event: what was not sent, and ignored NULLs of updates.

    `present` are the columns of the landed relation.
    """
    ignored = ignored_nulls(dataset)
    if not ignored:
        return f"to_json({as_written(shape, '__unsent')})"
    if ALL_BUT in ignored:
        before = f"array('{ALL_BUT}')"
        listed = [
            f"IF({quote(name)} IS NULL, NULL, {literal(name)})"
            for name in shape.values
            if name in present
        ]
    else:
        before = "coalesce(__unsent, CAST(array() AS ARRAY<STRING>))"
        null = {name: f"{quote(name)} IS NULL" for name in present}
        listed = [f"IF({null.get(name, 'true')}, {literal(name)}, NULL)" for name in ignored]
    names = f"array_compact(array({', '.join(['CAST(NULL AS STRING)', *listed])}))"
    unsent = f"IF(__decided = 'U', array_union({before}, {names}), __unsent)"
    return f"nullif(to_json({as_written(shape, unsent)}), '[]')"


def after_renames(texts: Texts, renames: Mapping[str, str]) -> dict[str, list[str]]:
    """The texts after columns were renamed (old name → new name)."""
    moved = {
        renames.get(column, column): list(spellings)
        for column, spellings in {**{old: [old] for old in renames}, **texts}.items()
    }
    for new in renames.values():
        moved[new].append(_fresh(new, moved))
    return moved


def after_additions(texts: Texts, columns: Iterable[str]) -> dict[str, list[str]]:
    """The texts after columns were added."""
    grown = {column: list(spellings) for column, spellings in texts.items()}
    for column in columns:
        if column not in grown and _is_taken(column, grown):
            grown[column] = [_fresh(column, grown)]
    return grown


def _is_taken(text: str, texts: Texts) -> bool:
    return any(text in spellings for spellings in texts.values())


def _fresh(name: str, texts: Texts) -> str:
    """The name, or the name with a number that no text has."""
    text, number = name, 1
    while _is_taken(text, texts):
        number += 1
        # No column name holds a control character.
        text = f"{name}\x1f{number}"
    return text


def is_look(prefix: str = "") -> str:
    """Whether an event, or the one that made a stored version, is a look."""
    marked = f"coalesce(array_contains({prefix}__unsent, '{READ}'), false)"
    return f"({prefix}__op = 'L' OR {marked})"


IS_LOOK: Final = is_look()
#: Whether that look is a row of a load, which is what begins a record that was not there.
IS_LOADED: Final = f"(__op = 'L' OR coalesce(array_contains(__unsent, '{LOADED}'), false))"


def oldest(shape: Shape) -> str:
    """SQL of the oldest sequence of a record that its events change; a look may fill all of it."""
    if shape.looks and shape.partial:
        return f"min(IF({IS_LOOK}, '', {SEQUENCE}))"
    return f"min({SEQUENCE})"


def is_base(shape: Shape, name: str) -> str:
    """Whether a stored version holds a value that it has from an older one, which is not here."""
    return f"(__own AND __nth = 1 AND __op NOT IN ('I', 'i', 'L') AND {is_unsent(shape, name)})"


def carries_nothing(shape: Shape, name: str) -> str:
    """Whether a record that changed its key has a column without a value under its former key."""
    return f"(__former IS NOT NULL AND {is_unsent(shape, name)} AND {quote(name)} IS NULL)"


def shown_later(shape: Shape, name: str, over_before: str, over_after: str) -> str:
    """SQL of a column that no event up to a version sent: what a look shows before others do.

    `over_before` is a window over the versions of a record before this one, `over_after` over those
    behind it in the same life. Where nothing comes after it, what is stored stays, because a look
    that made no version may have shown it. Two cases are told apart from that:

    - A delete behind the version: looks behind that delete say nothing of the version, although the
      stored value may be from there.
    - A stored version before it that was live: the value was that version's, until a delete landed
      between the two.
    """
    column = quote(name)
    sends = f"NOT __del AND (NOT {is_unsent(shape, name)} OR __former IS NOT NULL)"
    value, by_look = (
        f"first_value(IF({sends}, {one}, NULL), true) {over_after}"
        for one in (f"named_struct('v', {column})", IS_LOOK)
    )
    is_open = f"NOT coalesce(max(__del) {over_after}, false)"
    is_inherited = f"coalesce(NOT last_value(IF(__own, __del, NULL), true) {over_before}, false)"
    stays = f"{by_look} IS NULL AND __own AND {is_open} AND NOT {is_inherited}"
    return f"CASE WHEN {by_look} THEN {value}.v WHEN {stays} THEN {column} END"


def shows_nothing_new(shape: Shape, over: str) -> str:
    """Whether a version comes from a look that shows what the version before it shows.

    `over` is the window over a record whose values are all filled in. A value that events never
    sent is new, although the versions before have it from this look.
    """
    conditions = [IS_LOOK, "NOT __del", f"coalesce(NOT lag(__del) {over}, false)"]
    if shape.partial:
        conditions.append(f"lag(__told) {over}")
    for name in shape.values:
        value = comparable(quote(name), shape.columns[name])
        conditions.append(f"{value} <=> lag({value}) {over}")
    return f"({joined(conditions, 'AND')})"


def as_stored(shape: Shape) -> str:
    """SQL of the columns that the event of a version did not send, as they are stored.

    The operation of a version that follows another one does not tell that it is a look.
    """
    if not shape.looks:
        return "__unsent"
    marks = f"array('{READ}', '{LOADED}')"
    marked = f"array_union(coalesce(__unsent, CAST(array() AS ARRAY<STRING>)), {marks})"
    return f"IF(__op = 'L' AND __new_op <> 'L', {marked}, __unsent)"


_INTEGER: Final = "^[+-]?[0-9]{1,40}$"
_DAY: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = "[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
_SPELLED: Final[Mapping[DataType, str]] = {
    INT: _INTEGER,
    BIGINT: _INTEGER,
    # So short that no number is beyond the largest double.
    DOUBLE: "^[+-]?[0-9]{1,200}([.][0-9]+)?([eE][+-]?[0-9]{1,2})?$",
    BOOLEAN: "^(true|True|TRUE|false|False|FALSE)$",
    DATE: f"^{_DAY}$",
    TIMESTAMP: f"^{_DAY}{_TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}})?$",
    TIMESTAMP_NTZ: f"^{_DAY}{_TIME}$",
}

_FLOATS: Final = frozenset({FLOAT, DOUBLE})
#: The first number that an integer type does not hold. A floating one of it would be cast to the
#: last that it does.
_FIRST_OVERFLOW: Final[Mapping[DataType, str]] = {
    INT: "2147483648D",
    BIGINT: "9223372036854775808D",
}


def converted(value: str, old: DataType, new: DataType) -> str:
    """SQL of a value of the type `old` in the type `new`; NULL where it is none exactly.

    The types are a pair that `is_rewritable`, or nested ones of which the second is what `widen`
    gives.
    """
    if isinstance(old, Array | MapType | Struct):
        return _grown(value, old, new)
    cast = f"try_cast({value} AS {new})"
    if new == STRING:
        return cast
    if old == STRING:
        return f"IF({value} RLIKE {literal(_spelled(new))}, {cast}, NULL)"
    same = f"try_cast({cast} AS {old}) = {value}"
    for integer, floating, kind in ((old, new, cast), (new, old, value)):
        if integer in _FIRST_OVERFLOW and floating in _FLOATS:
            same += f" AND {kind} < {_FIRST_OVERFLOW[integer]}"
    return f"IF({same}, {cast}, NULL)"


def _grown(value: str, old: DataType, new: DataType, depth: int = 0) -> str:
    """SQL of a value in a type that grew out of its own.

    What is `void` in either type holds NULL only, whatever the table has it as: so the text is
    right for a column of the type `old`, and where both are the same, for one of any type that grew
    out of it.
    """
    item = f"x{depth}"
    match old, new:
        case (Void(), _) | (_, Void()):
            return f"CAST(NULL AS {storage_type(new)})"
        case Struct(()), Struct(()):
            return f"IF({value} IS NULL, NULL, '{{}}')"
        case Struct(before), Struct(after):
            stored = dict(before)
            members = (
                f"{literal(name)}, "
                + (
                    _grown(f"{value}.{quote(name)}", stored[name], kind, depth)
                    if name in stored
                    else f"CAST(NULL AS {storage_type(kind)})"
                )
                for name, kind in after
            )
            return f"IF({value} IS NULL, NULL, named_struct({', '.join(members)}))"
        case Array(before), Array(after):
            return f"transform({value}, {item} -> {_grown(item, before, after, depth + 1)})"
        case MapType(Void(), _), MapType():
            return f"IF({value} IS NULL, NULL, CAST(map() AS {storage_type(new)}))"
        case MapType(_, before), MapType(_, after):
            inner = _grown(item, before, after, depth + 1)
            return f"transform_values({value}, (k{depth}, {item}) -> {inner})"
        case _:
            return f"CAST({value} AS {new})"


def _spelled(kind: DataType) -> str:
    if isinstance(kind, Decimal):
        return f"^[+-]?[0-9]{{1,38}}([.][0-9]{{0,{kind.scale}}}0*)?$"
    return _SPELLED[kind]


def unconverted(value: str, old: DataType, new: DataType) -> str:
    """SQL condition that a value is there and that `converted` has none for it."""
    return f"{value} IS NOT NULL AND {converted(value, old, new)} IS NULL"


def bridged(shape: Shape, table: str) -> str:
    """The table as a relation in which the columns `shape.bridged` have the types of the shape.

    So it reads the same before and after the commit that gives them other types.
    """
    if not shape.bridged:
        return table
    columns = {name: name for name in HEADER_NAMES}
    for name in shape.data:
        columns[name] = _bridge(shape, name) if name in shape.bridged else quote(name)
    return f"(SELECT {selected(columns)} FROM {table})"


def _bridge(shape: Shape, name: str) -> str:
    kind = shape.columns[name]
    if isinstance(kind, Array | MapType | Struct):
        return _grown(quote(name), kind, kind)
    return f"CAST({quote(name)} AS {shape.type_of(name)})"


_BACKSPACE = "\\b"


def canonical(expression: str, datatype: DataType) -> str:
    """SQL of the canonical string of one key value. Semantics section 3, "Key hash"."""
    match datatype:
        case Primitive("timestamp"):
            return f"concat(replace(CAST({expression} AS STRING), ' ', 'T'), 'Z')"
        case Primitive("timestamp_ntz"):
            return f"replace(CAST({expression} AS STRING), ' ', 'T')"
        case Primitive("binary"):
            return f"lower(hex({expression}))"
        case _:
            return f"CAST({expression} AS STRING)"


def key_hash(shape: Shape) -> str:
    """SQL of `hdr__key_hash`: SHA-1 over the canonical values joined by one backspace character."""
    return f"unhex(sha1(concat_ws('{_BACKSPACE}', {', '.join(_values(shape, ''))})))"


def key_text(shape: Shape, prefix: str = "") -> str:
    """SQL of a text that only equal keys share: the JSON array of their canonical values."""
    return f"to_json(array({', '.join(_values(shape, prefix))}))"


def _values(shape: Shape, prefix: str) -> list[str]:
    return [canonical(prefix + quote(key), shape.columns[key]) for key in shape.keys]
