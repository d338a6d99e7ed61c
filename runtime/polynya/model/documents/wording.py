"""What is wrong with a value, in words of the files: the validation library's own reach nobody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from polynya.model.contract.identifiers import shown
from polynya.model.documents.nodes import Plain

#: What is expected, and an example, by how the validation library calls the error.
_EXPECTED: Final[Mapping[str, tuple[str, str]]] = {
    "string": ("text", "write one text"),
    "int": ("a whole number", "write a whole number, such as `1000`"),
    "float": ("a number", "write a number, such as `0.5`"),
    "bool": ("true or false", "write `true` or `false`"),
    "tuple": ("a list", "write a list, such as `[a, b]`"),
    "list": ("a list", "write a list, such as `[a, b]`"),
    "dict": ("a mapping of keys to values", "write `key: value` lines below it"),
    "model": ("a mapping of keys to values", "write `key: value` lines below it"),
    "dataclass": ("a mapping of keys to values", "write `key: value` lines below it"),
}
#: What to do about our own checks that do not say it themselves.
_FIXES: Final[Mapping[str, str]] = {
    "polynya_name": "choose another name",
    "polynya_path": "write a path below the folder, such as `orders/2026`",
}
_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def worded(kind: str, value: Plain, facts: Mapping[str, Any]) -> tuple[str, str | None]:
    """The message for an error of this kind, and what to do if that follows from it.

    `facts` are what the validation library says beside: limits, and the words of our own checks.
    """
    if "message" in facts:
        return str(facts["message"]), facts.get("fix") or _FIXES.get(kind)
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        limit = facts[name]
        limit = int(limit) if limit == int(limit) else limit
        return f"{shown(str(value))} is out of range", f"write a number that is {words} {limit}"
    if kind in {"literal_error", "enum"}:
        return f"{of_kind(value)} is not one of the possible values", None
    if kind in {"too_short", "string_too_short"}:
        return "it is empty", "write a value, or leave the key out"
    if kind in {"too_long", "string_too_long"}:
        most = facts.get("max_length")
        return "it is too long", f"at most {most} {_units(kind)}"
    if kind == "string_pattern_mismatch":
        return f"{of_kind(value)} does not have the right form", None
    expected = _EXPECTED.get(kind.partition("_")[0])
    if expected is None:
        return f"{of_kind(value)} cannot be used here", None
    what, fix = expected
    return f"{what} is expected here, not {of_kind(value)}", _quoted(what, value) or fix


def of_kind(value: Plain) -> str:
    """A value with its kind, as a message names it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"`{str(value).lower()}`"
        case int() | float():
            return f"the number {shown(str(value))}"
        case str():
            return f"the text {shown(value)}" if value else "an empty text"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _quoted(what: str, value: Plain) -> str | None:
    """How a value that was meant otherwise is written."""
    if what == "text" and isinstance(value, bool | int | float):
        return f'write it in quotes: "{str(value).lower()[:60]}"'
    if what == "a list" and isinstance(value, str) and value:
        return f"write it as a list: `[{shown(value)[1:-1]}]`"
    return None


def _units(kind: str) -> str:
    return "characters" if kind.startswith("string") else "entries"
