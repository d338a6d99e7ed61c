"""Regular expressions of settings, in the syntax of RE2: the time for a text is linear.

Only what RE2 and Python have in common passes, so that a pattern is refused by `validate` and not
by the first message.
"""

from __future__ import annotations

import re
from typing import Final

#: Java's and RE2's spelling of a named group.
_NAMED: Final = re.compile(r"\(\?<(?=[A-Za-z_])")
#: What RE2 does not have.
_FOREIGN: Final = (
    (re.compile(r"\(\?<?[=!]"), "look-around"),
    (re.compile(r"\(\?P="), "a back reference"),
    (re.compile(r"\(\?>"), "an atomic group"),
    (re.compile(r"\(\?\("), "a condition"),
    (re.compile(r"\(\?#"), "a comment"),
    (re.compile(r"[*+?}]\+"), "a possessive quantifier"),
    (re.compile(r"\\[1-9]"), "a back reference"),
    (re.compile(r"\\Z"), r"`\Z`; write `\z`"),
)
_ESCAPED: Final = re.compile(r"\\\\|\[(?:\\.|[^\]\\])+\]", re.DOTALL)
_MOST_GROUPS: Final = 200
_MOST_REPEATS: Final = 1000


def group_pattern(text: str) -> str:
    """A pattern with named groups as RE2 writes it.

    Raises:
        ValueError: it is no pattern, has no named group or one without a name, or needs more than
            RE2 has.
    """
    pattern = _NAMED.sub("(?P<", text)
    compiled = _compiled(pattern)
    names = compiled.groupindex
    if not names:
        raise ValueError("the pattern has no named group, such as `(?<name>.*)`")
    if compiled.groups != len(names):
        raise ValueError("a group of the pattern has no name: write `(?:...)` for one that is none")
    if compiled.groups > _MOST_GROUPS:
        raise ValueError(f"the pattern has more than {_MOST_GROUPS} groups")
    if len({name.lower() for name in names}) != len(names):
        raise ValueError("two groups of the pattern have names that differ only in case")
    return pattern


def group_names(text: str) -> list[str]:
    """The named groups of a pattern, in order. Raises ValueError as `group_pattern`."""
    return list(re.compile(group_pattern(text)).groupindex)


def split_pattern(text: str) -> str:
    """A pattern of what stands between two pieces.

    Raises:
        ValueError: it is no pattern, stands for nothing at all, or needs more than RE2 has.
    """
    compiled = _compiled(text)
    if compiled.fullmatch(""):
        raise ValueError("the pattern matches where nothing is, so it cuts between all characters")
    return text


def _compiled(pattern: str) -> re.Pattern[str]:
    bare = _ESCAPED.sub("x", pattern)
    for foreign, name in _FOREIGN:
        if foreign.search(bare):
            raise ValueError(f"the pattern has {name}, which RE2 does not know")
    for count in re.findall(r"\{(\d+)|,(\d+)\}", bare):
        if int(max(count, key=len)) > _MOST_REPEATS:
            raise ValueError(f"a part of the pattern is repeated more than {_MOST_REPEATS} times")
    try:
        return re.compile(pattern.replace(r"\z", r"\Z"))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"this is no regular expression: {error}") from None
