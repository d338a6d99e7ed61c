"""Patterns of paths that hold dates, such as `<yyyy>/<MM>/<dd>/part-*.json.gz`. Dates are in UTC.

A placeholder may stand anywhere, also inside of a name, and several times: it then stands for the
same number. `*` is any text within one folder or name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Final

from polynya.model.contract.paths import relative_path_problem
from polynya.model.contract.wildcards import joined

#: From the largest to the smallest, with the number of digits.
UNITS: Final = {"yyyy": 4, "MM": 2, "dd": 2, "HH": 2, "mm": 2}
_NAMES: Final = tuple(UNITS)
_TOKEN: Final = re.compile(r"<[^<>]*>|\*|[^<>*]+|[<>]")
#: In one folder or name, where a placeholder stands twice: each makes reading a name longer.
_MOST_OPEN: Final = 2
_FORMS: Final = dict(zip(_NAMES, ("%Y", "%m", "%d", "%H", "%M"), strict=True))


@dataclass(frozen=True)
class FilePattern:
    """A pattern, read.

    Attributes:
        text: as it was written.
        tokens: literal texts, `*` and placeholders.
        depth: how many units its dates have, 0 for none: with `<yyyy>/<MM>` 2.
        starts: by a number of units, the first tokens that know exactly so many of them and no
            `*`: how every path begins whose date is known so far. There is always one for 0.
    """

    text: str
    tokens: tuple[str, ...]
    depth: int
    starts: dict[int, tuple[str, ...]]

    @property
    def unit(self) -> str | None:
        """The finest unit of its dates, None without dates."""
        return _NAMES[self.depth - 1] if self.depth else None

    @property
    def in_order(self) -> bool:
        """Whether paths in the order of their bytes are in the order of their dates."""
        return len(self.starts) == self.depth + 1

    def start(self, depth: int, moment: datetime) -> str:
        """How paths begin whose first `depth` units are those of a moment."""
        return "".join(_filled(part, moment) for part in self.starts[depth])

    @property
    def common(self) -> str:
        """How all paths begin."""
        return "".join(self.starts[0])

    def matches(self, path: str) -> bool:
        """Whether a path has this form, with a date that exists."""
        found = self._units(path)
        return found is not None and (not self.depth or _date(found) is not None)

    def date(self, path: str) -> datetime | None:
        """The moment at which the date of a path begins; None without one."""
        found = self._units(path)
        return _date(found) if found and self.depth else None

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """The folders with `*` and those before them, as far as no date stands in one of them."""
        folders = self.text.split("/")[:-1]
        dated = next((n for n, one in enumerate(folders) if "<" in one), len(folders))
        wild = [n for n, one in enumerate(folders[:dated]) if "*" in one]
        return tuple(folders[: wild[-1] + 1]) if wild else ()

    def below(self, path: str) -> FilePattern | None:
        """The pattern with a path in place of `folders`; None when they do not stand for it.

        Args:
            path: with `/` at its end.
        """
        count = len(self.folders)
        form = joined([*map(re.escape, ("/".join(self.folders) + "/").split("*"))], "[^/]")
        if re.fullmatch(form, path, re.DOTALL) is None:
            return None
        rest = file_pattern("/".join(self.text.split("/")[count:]))
        starts = {depth: (path, *tokens) for depth, tokens in rest.starts.items()}
        return FilePattern(path + rest.text, (path, *rest.tokens), rest.depth, starts)

    def _units(self, path: str) -> dict[str, str] | None:
        """The digits of its placeholders in a path; None for one of another form.

        Where a name has several such places they are the last ones: it is read from its end.
        """
        if self._repeats:
            found = self._regex.fullmatch(path)
            return None if found is None else found.groupdict()
        backwards = self._backwards.fullmatch(path[::-1])
        if backwards is None:
            return None
        return {unit: digits[::-1] for unit, digits in backwards.groupdict().items()}

    @cached_property
    def _repeats(self) -> bool:
        return any(self.tokens.count(f"<{unit}>") > 1 for unit in UNITS)

    @cached_property
    def _backwards(self) -> re.Pattern[str]:
        """The form of a path that is read from its end."""
        parts = [""]
        for part in reversed(self.tokens):
            if part == "*":
                parts.append("")
            elif part.startswith("<"):
                parts[-1] += f"(?P<{part[1:-1]}>[0-9]{{{UNITS[part[1:-1]]}}})"
            else:
                parts[-1] += re.escape(part[::-1])
        return re.compile(joined(parts, "[^/]"), re.DOTALL)

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        """The form of a path in which a placeholder stands twice for the same number."""
        parts, seen = [], set()
        for part in self.tokens:
            unit = part.strip("<>")
            if part == "*":
                parts.append("[^/]*")
            elif not part.startswith("<"):
                parts.append(re.escape(part))
            elif unit in seen:
                parts.append(f"(?P={unit})")
            else:
                seen.add(unit)
                parts.append(f"(?P<{unit}>[0-9]{{{UNITS[unit]}}})")
        return re.compile("".join(parts), re.DOTALL)


@lru_cache(maxsize=256)
def file_pattern(text: str) -> FilePattern:
    """Read a pattern. Raises ValueError with what is wrong."""
    if problem := relative_path_problem(text):
        raise ValueError(problem)
    if "**" in text:
        raise ValueError("`**` is not known: `*` stands for text within one folder or name")
    tokens = tuple(_TOKEN.findall(text))
    seen: list[str] = []
    starts: dict[int, tuple[str, ...]] = {}
    open_ended = False
    for count, part in enumerate(tokens):
        unit = part.strip("<>") if part[0] in "<>" else ""
        if part[0] in "<>" and unit not in UNITS:
            known = " ".join(f"<{one}>" for one in UNITS)
            raise ValueError(f"`{part[:40]}` is none of {known}")
        if not open_ended and (part == "*" or (unit and unit not in seen)):
            _mark(starts, seen, tokens[:count])
        open_ended = open_ended or part == "*"
        if unit and unit not in seen:
            seen.append(unit)
    if not open_ended:
        _mark(starts, seen, tokens)
    largest = _NAMES[: max(map(_NAMES.index, seen), default=0)]
    missing = [one for one in largest if one not in seen]
    if missing:
        raise ValueError(f"`<{seen[-1]}>` is no date without `<{missing[0]}>`")
    found = FilePattern(text, tokens, len(seen), starts)
    if found._repeats and any(one.count("*") > _MOST_OPEN for one in text.split("/")):
        raise ValueError(
            f"a folder or name has more than {_MOST_OPEN} `*`, and a placeholder stands twice"
        )
    return found


def _mark(starts: dict[int, tuple[str, ...]], seen: list[str], tokens: tuple[str, ...]) -> None:
    """Take note of a start when the units before it are the largest ones, in any order."""
    if set(seen) == set(_NAMES[: len(seen)]):
        starts[len(seen)] = tokens


def _filled(part: str, moment: datetime) -> str:
    if not part.startswith("<"):
        return part
    text = moment.strftime(_FORMS[part.strip("<>")])
    # `%Y` of years before 1000 is shorter on some systems.
    return text.zfill(UNITS[part.strip("<>")])


def _date(found: Mapping[str, str]) -> datetime | None:
    numbers = [int(found[unit]) for unit in _NAMES if unit in found]
    year, month, day, hour, minute = [*numbers, *(1, 1, 1, 0, 0)[len(numbers) :]]
    try:
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None
