"""Texts with wildcards as regular expressions whose time grows with the text, not with its power.

`*a*b*c` as `.*a.*b.*c` tries every place of every part. Here a part is taken at the first place
where it is found and stays there: what follows a wildcard may be as far away as it likes, so a
later place never helps. Only the last part has to stand at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_ANY: Final = "."
#: Wildcards of a glob, with `[…]` and `?` for one character; none of these is a `/` but `**`.
_TOKEN: Final = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|[^*?\[]+|\[", re.DOTALL)
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
    tokens = _TOKEN.findall(glob)
    deep = [at for at, token in enumerate(tokens) if token in _GAPS]
    found, begin = "", 0
    for number, at in enumerate([*deep, len(tokens)]):
        is_last = number == len(deep)
        moves = not is_last and _moves(tokens, at)
        part = _block(tokens[begin:at], is_whole=is_last, is_exact=moves)
        if number == 0:
            found = part
        else:
            gaps = _GAPS_AT_THE_END if is_last else _GAPS
            gap = gaps[tokens[begin - 1]]
            found += f"{gap}{part}" if is_last or moves else f"(?>{gap}{part})"
        begin = at + 1
    return found


def _moves(tokens: Sequence[str], at: int) -> bool:
    """Whether a later place of what is before a `**/` may help: it does not follow a `/`."""
    return tokens[at] == "**/" and at > 0 and not tokens[at - 1].endswith("/")


def _block(tokens: Sequence[str], *, is_whole: bool, is_exact: bool) -> str:
    """What stands between two `**`; at the first place where it is found, unless it is the end.

    `is_exact`: its last part may be needed at a later place.
    """
    parts, texts = [""], 0
    for one in tokens:
        if one == "*":
            parts.append("")
            texts += 1
        else:
            parts[-1] += _single(one)
    if not texts:
        return parts[0]
    if is_whole:
        return joined(parts, "[^/]")
    first, *middle, last = parts
    found = first + "".join(f"(?>[^/]*?{part})" for part in middle)
    return found + (f"[^/]*?{last}" if is_exact else f"(?>[^/]*?{last})")


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
