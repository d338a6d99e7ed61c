"""Times in the names of files and folders, such as `users_%Y%m%d.csv` or `date=%Y-%m-%d`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

_DIGITS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "f": 6, "j": 3}


@lru_cache(maxsize=256)
def name_time_pattern(text: str) -> re.Pattern[str]:
    """Regular expression of a pattern in the directives of `strptime`.

    Raises ValueError for a directive that is not known, twice there, or a pattern without a year.
    """
    parts, seen = [], set()
    for piece in re.findall(r"%.|[^%]+|%", text, re.DOTALL):
        directive = piece[1:]
        if not piece.startswith("%"):
            parts.append(re.escape(piece))
        elif directive == "%":
            parts.append("%")
        elif directive not in _DIGITS or directive in seen:
            known = " ".join(f"%{one}" for one in _DIGITS)
            raise ValueError(f"`{piece}` is none of {known}, each at most once")
        else:
            seen.add(directive)
            parts.append(f"[0-9]{{{_DIGITS[directive]}}}")
    if "Y" not in seen:
        raise ValueError("a time needs its year: `%Y`")
    # Digits beside the pattern belong to another number.
    return re.compile(f"(?<![0-9]){''.join(parts)}(?![0-9])")


def time_in_name(name: str, pattern: str) -> datetime | None:
    """The first time (UTC) that a name holds in the form of `pattern`, None if it holds none."""
    for match in name_time_pattern(pattern).finditer(name):
        try:
            return datetime.strptime(match[0], pattern).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None
