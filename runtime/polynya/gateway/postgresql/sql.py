"""Names, texts and log positions in PostgreSQL's SQL. Identifiers are quoted here and nowhere else.

Statements go by the simple protocol, without parameters: COPY takes none.
"""

from __future__ import annotations

from typing import Final

_NUL: Final = "\0"
#: What messages of our own in the log begin with, and the one that a capture answers: it lands how
#: far it is.
PREFIX: Final = "polynya"
ASKED: Final = "compare"


def identifier(name: str) -> str:
    """A name as an identifier. Raises ValueError for one that cannot be one."""
    if not name or _NUL in name:
        raise ValueError(f"{name!r} cannot be a name")
    return '"' + name.replace('"', '""') + '"'


def qualified(schema: str, name: str) -> str:
    """A name within its schema."""
    return f"{identifier(schema)}.{identifier(name)}"


def literal(text: str) -> str:
    """A text as a literal; the sessions of the gateway have standard strings. Raises ValueError."""
    if _NUL in text:
        raise ValueError("a text of PostgreSQL holds no zero bytes")
    return "'" + text.replace("'", "''") + "'"


def lsn_number(text: str) -> int:
    """A position of the log, `16/B374D848`, as Debezium's number. Raises ValueError."""
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def lsn_text(number: int) -> str:
    """The same as PostgreSQL writes it."""
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"
