"""Types of columns that Debezium takes from a statement for others than the server has. Pure.

Each gets the definition that the catalog of the server has of it, so that a column is the same
whether a statement made it while its table was captured or before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import SqlglotError

#: Name, number of JDBC and length of the type that is read, by the first word of the one written.
#: UUID comes as text and loses zeros at its end, BOOLEAN as true for 2, REAL with 7 digits; SERIAL
#: is unsigned.
_OTHERS: Final[Mapping[str, tuple[str, int, int | None]]] = {
    "UUID": ("BINARY", -2, 16),
    "BOOL": ("TINYINT", 5, 1),
    "BOOLEAN": ("TINYINT", 5, 1),
    "SERIAL": ("BIGINT UNSIGNED", -5, None),
    "REAL": ("DOUBLE", 8, None),
    "FLOAT4": ("FLOAT", 6, None),
}
#: Texts in the character set `binary` are bytes, by the number of JDBC.
_OF_BYTES: Final[Mapping[int, tuple[str, int]]] = {1: ("BINARY", -2), 12: ("VARBINARY", -3)}
_LONG: Final = ("BLOB", 2004)
_LABELS: Final = frozenset({"ENUM", "SET"})
#: Of a statement that adds a column or changes one, and what fills it in rows that are there.
_CHANGES: Final = frozenset({"ADD", "MODIFY", "CHANGE"})
_FILLING: Final = frozenset({"AS", "GENERATED", "SERIAL", "AUTO_INCREMENT", "TIMESTAMP"})
_NO_VALUES: Final = frozenset({"NULL", "CHARSET", "CHARACTER", "COLLATE"})
#: A type is not what stands behind one of these.
_BEFORE: Final = frozenset({TokenType.L_PAREN, TokenType.COMMA, TokenType.ALIAS})


def misread_tables(changes: Any) -> list[str]:
    """The tables among `tableChanges` of an event that have a column of such a type."""
    return [_name(one) for one in _tables(changes) if any(map(_other, one["table"]["columns"]))]


def altered_tables(changes: Any) -> list[str]:
    """The tables with a key among `tableChanges` of an event that were there and were changed."""
    return [
        _name(one)
        for one in _tables(changes)
        if one.get("type") == "ALTER" and one["table"].get("primaryKeyColumnNames")
    ]


def fills(statement: str) -> bool:
    """Whether a statement may give rows that are there a value for a column.

    One that only looks so costs a load of its table.
    """
    try:
        tokens = tokenize(statement, read="mysql")
    except SqlglotError:
        return True
    words = [
        "" if one.token_type in {TokenType.STRING, TokenType.IDENTIFIER} else one.text.upper()
        for one in tokens
    ]
    if not _CHANGES.intersection(words):
        return False
    pairs = set(pairwise([*words, ""]))
    defaults = {after for before, after in pairs if before == "DEFAULT"} - _NO_VALUES
    return bool(defaults or ("NOT", "NULL") in pairs or _FILLING.intersection(words))


def as_read_changes(changes: Any) -> bool:
    """Change `tableChanges` of a history to the types that are read; whether one has changed."""
    found = [
        (column, other)
        for one in _tables(changes)
        for column in one["table"]["columns"]
        if (other := _other(column))
    ]
    for column, other in found:
        column.update(other)
        # It is written in the words of the former type, and says nothing that is needed.
        column["hasDefaultValue"] = False
        column.pop("defaultValueExpression", None)
    return bool(found)


def as_read_statement(statement: str) -> str:
    """A statement that makes a table, with the types that are read."""
    try:
        tokens = tokenize(statement, read="mysql")
    except SqlglotError:
        return statement
    for number in reversed(range(1, len(tokens))):
        one = tokens[number]
        other = _OTHERS.get(one.text.upper())
        if other is not None and _is_type(tokens, number):
            name, _, length = other
            written = f"{name}({length})" if length else name
            statement = f"{statement[: one.start]}{written}{statement[one.end + 1 :]}"
    return statement


def _is_type(tokens: list[Token], number: int) -> bool:
    """Whether a word stands behind a name, and is none, and no function."""
    one, before = tokens[number], tokens[number - 1]
    is_called = number + 1 < len(tokens) and tokens[number + 1].token_type is TokenType.L_PAREN
    if one.token_type is TokenType.IDENTIFIER or before.token_type in _BEFORE or is_called:
        return False
    # `KEY uuid`, `DEFAULT uuid`, `TABLE uuid`: a column is named right behind `(` or a comma.
    return number >= 2 and tokens[number - 2].token_type in {TokenType.L_PAREN, TokenType.COMMA}


def _other(column: Mapping[str, Any]) -> dict[str, Any]:
    """What another type changes of a column's definition; empty for most."""
    word, *rest = str(column.get("typeName") or "").upper().split() or [""]
    length = column.get("length")
    if word in _OTHERS:
        name, number, length = _OTHERS[word]
        name = " ".join([name, *rest])
    elif _is_of_bytes(column) and word not in _LABELS:
        is_long = "TEXT" in word or word == "LONG"
        name, number = _LONG if is_long else _OF_BYTES[int(column["jdbcType"])]
    else:
        return {}
    found = {"typeName": name, "typeExpression": name, "jdbcType": number, "charsetName": None}
    return found if length is None else {**found, "length": length}


def _is_of_bytes(column: Mapping[str, Any]) -> bool:
    charset = str(column.get("charsetName") or "").lower()
    return charset == "binary" and column.get("jdbcType") in _OF_BYTES


def _tables(changes: Any) -> Iterator[Mapping[str, Any]]:
    for one in changes if isinstance(changes, list) else ():
        table = one.get("table") if isinstance(one, dict) else None
        if isinstance(table, dict) and isinstance(table.get("columns"), list):
            yield one


def _name(change: Mapping[str, Any]) -> str:
    """`"space"."table"` as `space.table`; of one that was renamed, the new name."""
    last = str(change.get("id") or "").split(",")[-1]
    return ".".join(part.replace('""', '"') for part in _parts(last))


def _parts(quoted: str) -> list[str]:
    return [token.text for token in tokenize(quoted) if token.token_type is TokenType.IDENTIFIER]
