"""Reading a table in the order of its key: the conditions of a chunk. Pure.

A comparison of whole tuples would not use the index, so each is written out. The constant of a text
has the bytes and the character set of its column, and no collation of its own: the server compares
by that of the column, in the order of the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from polynya.gateway.mysql.catalog import Table
from polynya.gateway.mysql.quoting import literal, quoted, text_of_bytes
from polynya.gateway.mysql.types.table import Facts
from polynya.gateway.reading_order import ReadingOrder

#: The kind of texts that a collation orders; their values are hex.
_COLLATED: Final = "collated"


@dataclass(frozen=True, slots=True)
class Keyset:
    """The key of a table that is read in its order."""

    columns: tuple[tuple[Facts, str], ...]

    @property
    def reading(self) -> ReadingOrder:
        """The order as a load remembers it."""
        return ReadingOrder(
            tuple(
                (facts.name, (facts.collation or "") if kind == _COLLATED else kind)
                for facts, kind in self.columns
            )
        )

    @property
    def order(self) -> str:
        """The columns as a list in SQL."""
        return ", ".join(quoted(facts.name) for facts, _ in self.columns)

    @property
    def selected(self) -> str:
        """What to select for the values of a key: numbers as text too, they may be long."""
        return ", ".join(
            f"LOWER(HEX({quoted(facts.name)}))" if kind in {"bytes", _COLLATED}
            else quoted(facts.name)
            for facts, kind in self.columns
        )  # fmt: skip

    def beyond(self, values: Sequence[str]) -> str:
        """The condition for rows after a key."""
        return self._compared(values, ">", last=">")

    def up_to(self, values: Sequence[str]) -> str:
        """The condition for rows up to a key and with it."""
        return self._compared(values, "<", last="<=")

    def _compared(self, values: Sequence[str], sign: str, last: str) -> str:
        names = [quoted(facts.name) for facts, _ in self.columns]
        constants = [
            _constant(facts, kind, value)
            for (facts, kind), value in zip(self.columns, values, strict=True)
        ]
        parts = []
        for place, (column, value) in enumerate(zip(names, constants, strict=True)):
            equal = [f"{c} = {v}" for c, v in zip(names[:place], constants[:place], strict=True)]
            is_last = place == len(names) - 1
            parts.append(" AND ".join([*equal, f"{column} {last if is_last else sign} {value}"]))
        whole = " OR ".join(f"({part})" for part in parts)
        if len(parts) == 1:
            return whole
        # Says again what the rest says, for the range of the index.
        return f"{names[0]} {sign}= {constants[0]} AND ({whole})"


def keyset_of(table: Table) -> Keyset | None:
    """The key of a table; None: it is read as a whole.

    That is so without a key, and with one whose order is not that of its constants: labels are
    ordered by number, rounded numbers equal nothing, long texts are in no index, and in some
    collations of MariaDB the index has CHAR in another order than a comparison.
    """
    known = {facts.name: (facts, coding.key) for facts, coding in table.captured}
    columns = []
    for name in table.key:
        facts, kind = known.get(name, (None, None))
        if facts is None or kind is None or _is_unlike_its_index(facts):
            return None
        columns.append((facts, kind))
    return Keyset(tuple(columns)) if columns else None


def _is_unlike_its_index(facts: Facts) -> bool:
    """The index has the blanks at the end of a CHAR, a comparison does not.

    That matters where blanks are not added by the comparison itself (NOPAD), and in Thai, where a
    vowel changes its place with what comes after it.
    """
    collation = facts.collation or ""
    return facts.type == "char" and ("nopad" in collation or collation.startswith("tis620_thai"))


def _constant(facts: Facts, kind: str, value: str) -> str:
    if kind == "number":
        return _number(value)
    if kind == _COLLATED:
        assert facts.charset is not None
        return text_of_bytes(bytes.fromhex(value), facts.charset)
    return f"X'{bytes.fromhex(value).hex()}'" if kind == "bytes" else literal(value)


def _number(text: str) -> str:
    digits = text.removeprefix("-").replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text[:60]!r} is no number of a key")
    return text
