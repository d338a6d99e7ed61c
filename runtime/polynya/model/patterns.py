"""Patterns of files and names: wildcards, and dates in paths and file names.

A placeholder may stand anywhere, also inside a name, and more than once: it then stands for the
same number each time. `*` is any text within one folder or name.

A pattern becomes a regular expression that takes linear time. The usual translation of `*a*b*c`,
`.*a.*b.*c`, tries every position of every part. Here a part is matched at its first position and
stays there: the text behind a wildcard may be any distance away, so a later position never helps.
Only the last part has to stand at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Final

from polynya.model.names import relative_path_problem

_ANY: Final = "."
#: Wildcards of a glob, with `[…]` and `?` for one character; none of these is a `/` but `**`.
_WILDCARD_TOKEN: Final = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|[^*?\[]+|\[", re.DOTALL)
_GAPS: Final = {"**": ".*?", "**/": "(?:.*?/)??"}
_GAPS_AT_THE_END: Final = {"**": ".*", "**/": "(?:.*/)?"}


def joined(parts: Sequence[str], one: str = _ANY) -> str:
    """The expression for parts with any text between two of them.

    Args:
        parts: expressions of texts of fixed length.
        one: the expression of a character that may stand between them.
    """
    if len(parts) == 1:
        return parts[0]
    first, *middle, last = parts
    return "".join((first, *(f"(?>{one}*?{part})" for part in middle), f"{one}*{last}"))


def glob_expression(glob: str) -> str:
    """The expression of a glob; `*` stays within a folder, `**` does not, `**/` may be nothing."""
    tokens = _WILDCARD_TOKEN.findall(glob)
    deep = [at for at, token in enumerate(tokens) if token in _GAPS]
    expression, begin = "", 0
    for number, at in enumerate([*deep, len(tokens)]):
        is_last = number == len(deep)
        moves = not is_last and _moves(tokens, at)
        part = _block(tokens[begin:at], is_whole=is_last, is_exact=moves)
        if number == 0:
            expression = part
        else:
            gaps = _GAPS_AT_THE_END if is_last else _GAPS
            gap = gaps[tokens[begin - 1]]
            expression += f"{gap}{part}" if is_last or moves else f"(?>{gap}{part})"
        begin = at + 1
    return expression


def _moves(tokens: Sequence[str], at: int) -> bool:
    """Whether a later place of what is before a `**/` may help: it does not follow a `/`."""
    return tokens[at] == "**/" and at > 0 and not tokens[at - 1].endswith("/")


def _block(tokens: Sequence[str], *, is_whole: bool, is_exact: bool) -> str:
    """What stands between two `**`; at the first place where it is found, unless it is the end.

    `is_exact`: its last part may be needed at a later place.
    """
    parts, texts = [""], 0
    for word in tokens:
        if word == "*":
            parts.append("")
            texts += 1
        else:
            parts[-1] += _single(word)
    if not texts:
        return parts[0]
    if is_whole:
        return joined(parts, "[^/]")
    first, *middle, last = parts
    expression = first + "".join(f"(?>[^/]*?{part})" for part in middle)
    return expression + (f"[^/]*?{last}" if is_exact else f"(?>[^/]*?{last})")


def _single(sign: str) -> str:
    if sign == "?":
        return "[^/]"
    if sign.startswith("[") and len(sign) > 1:
        inner = re.sub(r"([\\\[^])", r"\\\1", sign[1:-1])
        return f"[^/{inner[1:]}]" if inner.startswith("!") else f"(?!/)[{inner}]"
    return re.escape(sign)


@lru_cache(maxsize=1000)
def any_text(pattern: str, wildcards: str) -> re.Pattern[str]:
    """The expression of a text in which each of some characters stands for any text."""
    parts = re.split(f"[{re.escape(wildcards)}]", pattern)
    return re.compile(joined([re.escape(part) for part in parts]), re.DOTALL)


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


#: From the largest to the smallest, with the number of digits.
UNITS: Final = {"yyyy": 4, "MM": 2, "dd": 2, "HH": 2, "mm": 2}
_NAMES: Final = tuple(UNITS)
_PATTERN_TOKEN: Final = re.compile(r"<[^<>]*>|\*|[^<>*]+|[<>]")
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
        units = self._units(path)
        return units is not None and (not self.depth or _date(units) is not None)

    def date(self, path: str) -> datetime | None:
        """The moment at which the date of a path begins; None without one."""
        units = self._units(path)
        return _date(units) if units and self.depth else None

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """The folders with `*` and those before them, as far as no date stands in one of them."""
        folders = self.text.split("/")[:-1]
        dated = next((n for n, folder in enumerate(folders) if "<" in folder), len(folders))
        wild = [n for n, folder in enumerate(folders[:dated]) if "*" in folder]
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
            match = self._regex.fullmatch(path)
            return None if match is None else match.groupdict()
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
    tokens = tuple(_PATTERN_TOKEN.findall(text))
    seen: list[str] = []
    starts: dict[int, tuple[str, ...]] = {}
    open_ended = False
    for count, part in enumerate(tokens):
        unit = part.strip("<>") if part[0] in "<>" else ""
        if part[0] in "<>" and unit not in UNITS:
            known = " ".join(f"<{unit}>" for unit in UNITS)
            raise ValueError(f"`{part[:40]}` is none of {known}")
        if not open_ended and (part == "*" or (unit and unit not in seen)):
            _mark(starts, seen, tokens[:count])
        open_ended = open_ended or part == "*"
        if unit and unit not in seen:
            seen.append(unit)
    if not open_ended:
        _mark(starts, seen, tokens)
    largest = _NAMES[: max(map(_NAMES.index, seen), default=0)]
    missing = [unit for unit in largest if unit not in seen]
    if missing:
        raise ValueError(f"`<{seen[-1]}>` is not a date without `<{missing[0]}>`")
    pattern = FilePattern(text, tokens, len(seen), starts)
    if pattern._repeats and any(part.count("*") > _MOST_OPEN for part in text.split("/")):
        raise ValueError(
            f"a folder or name has more than {_MOST_OPEN} `*`, and a placeholder stands twice"
        )
    return pattern


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


def _date(units: Mapping[str, str]) -> datetime | None:
    numbers = [int(units[unit]) for unit in _NAMES if unit in units]
    year, month, day, hour, minute = [*numbers, *(1, 1, 1, 0, 0)[len(numbers) :]]
    try:
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None
