"""Rows in aligned columns that fit a width: long cells are cut, or each row takes several lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from polynya.cli.json_values import jsonable

_GAP: Final = "  "
_CUT: Final = "…"
#: Characters that a cell keeps at least.
_LEAST: Final = 8


def value_text(value: object) -> str:
    """A value in one line: NULL by name, nested values as JSON."""
    if value is None:
        return "NULL"
    simple = jsonable(value)
    text = simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)
    return " ".join(text.split()) if "\n" in text or "\t" in text else text


def grid(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int, indent: str
) -> Iterator[str]:
    """Lines of at most `width` characters, or one line a value where there are too many columns."""
    room = width - len(indent) - len(_GAP) * (len(header) - 1)
    widths = [
        max(len(name), *(len(row[place]) for row in rows)) for place, name in enumerate(header)
    ]
    if sum(min(one, _LEAST) for one in widths) > room:
        yield from _listed(header, rows, width, indent)
        return
    while sum(widths) > room:
        longest = max(range(len(widths)), key=widths.__getitem__)
        widths[longest] -= 1
    for row in (header, *rows):
        cells = (_cut(cell, size).ljust(size) for cell, size in zip(row, widths, strict=True))
        yield (indent + _GAP.join(cells)).rstrip()


def _listed(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int, indent: str
) -> Iterator[str]:
    name_width = min(max(map(len, header)), width // 2)
    room = max(_LEAST, width - len(indent) - name_width - len(_GAP))
    for number, row in enumerate(rows, 1):
        yield f"{indent}{number}:"
        for name, cell in zip(header, row, strict=True):
            yield f"{indent}{_cut(name, name_width):<{name_width}}{_GAP}{_cut(cell, room)}"


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + _CUT
