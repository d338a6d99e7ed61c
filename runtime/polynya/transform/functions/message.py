"""Format strings with numbered places, as Java's `MessageFormat` reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_PLACE: Final = re.compile(r"\s*(\d{1,4})\s*(?:,\s*number\s*(?:,(.+))?)?", re.DOTALL)
_NAMED: Final = {"percent": "#,##0%", "integer": "#,##0", "currency": None}
_NUMBER: Final = "#,##0.###"


@dataclass(frozen=True, slots=True)
class Part:
    """Plain text, or the place of an input with the pattern of a number (None: as text)."""

    text: str
    index: int | None = None
    pattern: str | None = None


def message_parts(form: str) -> list[Part] | None:
    """The parts of a format; None for one that is wrong."""
    parts, plain, at, quoted = [], "", 0, False
    while at < len(form):
        one = form[at]
        if one == "'":
            if form[at + 1 : at + 2] == "'":
                plain, at = plain + one, at + 1
            else:
                quoted = not quoted
        elif one == "{" and not quoted:
            end = form.find("}", at)
            place = None if end < 0 else _place(form[at + 1 : end])
            if place is None:
                return None
            parts += [Part(plain), place] if plain else [place]
            plain, at = "", end
        elif one == "}" and not quoted:
            return None
        else:
            plain += one
        at += 1
    return [*parts, Part(plain)] if plain else parts


def _place(text: str) -> Part | None:
    found = _PLACE.fullmatch(text)
    if found is None:
        return None
    index, pattern = int(found[1]), found[2]
    if "," not in text:
        return Part("", index)
    if pattern is None:
        return Part("", index, _NUMBER)
    named = _NAMED.get(pattern.strip(), pattern)
    return None if named is None else Part("", index, named)
