"""Types that YAML cut at a comma: inside `{ }`, `b: decimal(10,2)` are two entries."""

from __future__ import annotations

from collections.abc import Mapping

from polynya.model.documents.nodes import Path, Plain

_OPENING = {"(": 1, "<": 1, ")": -1, ">": -1}


def cut_types(value: Plain) -> dict[Path, str]:
    """Path of a setting `columns.NAME` in a document → its type as it was meant.

    The paths of the pieces that came to stand beside it are there too, with an empty text.
    """
    found: dict[Path, str] = {}

    def look(value: Plain, path: Path) -> None:
        if isinstance(value, dict):
            if path and path[-1] == "columns":
                _rejoin(value, path, found)
            for key, inner in value.items():
                look(inner, (*path, key))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                look(inner, (*path, index))

    look(value, ())
    return found


def _rejoin(columns: Mapping[str, Plain], path: Path, found: dict[Path, str]) -> None:
    entries = list(columns.items())
    while entries:
        name, text = entries.pop(0)
        if not isinstance(text, str) or _open(text) <= 0:
            continue
        pieces = []
        while entries and entries[0][1] is None and _open(text) > 0:
            piece, _ = entries.pop(0)
            pieces.append(piece)
            text += f",{piece}"
        if pieces and _open(text) == 0:
            found[*path, name] = text
            found |= {(*path, piece): "" for piece in pieces}


def _open(text: str) -> int:
    """Brackets that are open at the end of a text."""
    return sum(_OPENING.get(character, 0) for character in text)
