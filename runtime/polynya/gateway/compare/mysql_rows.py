"""Rows of MariaDB and MySQL, hashed here: of tables with too long ones for the server. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from polynya.gateway.compare.mysql_texts import Text
from polynya.gateway.compare.ranges import RowState


def hashed(
    rows: Iterable[Sequence[bytes | None]], texts: Mapping[str, Text], key: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Of each row the hash of its key, the text of its key, the hash of its compared columns.

    Args:
        rows: values of the compared columns, long ones as they are, others as their texts.
        texts: those of the columns, in the same order.
        key: the columns by which rows are told apart; () for whole rows.
    """
    names, each = list(texts), list(texts.values())
    places = [names.index(name) for name in key]
    for row in rows:
        values = [_written(one, value) for one, value in zip(each, row, strict=False)]
        whole = _one_text(values)
        if not places:
            yield _md5(whole), whole.decode(errors="replace"), _md5(whole)
            continue
        parts = [values[place] for place in places]
        shown = b", ".join(b"NULL" if one is None else one for one in parts)
        yield _md5(_one_text(parts)), shown.decode(errors="replace"), _md5(whole)


def collected(rows: Iterable[tuple[str, str, str]]) -> dict[str, RowState]:
    """Rows by the hash of their key, with the number of copies."""
    found: dict[str, RowState] = {}
    for key, text, digest in rows:
        known = found.get(key)
        if known is None:
            found[key] = RowState(text, digest)
        else:
            found[key] = RowState(text, min(digest, known.digest), known.copies + 1)
    return found


def range_of(key: str, bits: int) -> int:
    """The number of the range of a key's hash."""
    return int(key[:8], 16) >> (32 - bits)


def _written(text: Text, value: bytes | None) -> bytes | None:
    return value.hex().encode() if text.is_hex and value is not None else value


def _one_text(values: Sequence[bytes | None]) -> bytes:
    """One text of several, from which each could be read again; NULL is one of its own."""
    parts = (
        b"-" if one is None else b"+%d:%b" % (len(one.decode(errors="replace")), one)
        for one in values
    )
    return b"".join(parts)


def _md5(text: bytes) -> str:
    return hashlib.md5(text, usedforsecurity=False).hexdigest()
