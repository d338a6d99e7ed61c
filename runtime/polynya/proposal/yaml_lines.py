"""YAML of proposed files: a setting a line, each with its reason as a comment.

Names and texts may come from files, catalogs and messages of others. They stay text here: quoted,
without what cannot be printed, and without references such as `${env:NAME}`, which settings have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from polynya.proposal.settings import ProposedSetting

#: Where comments begin, if the setting is not longer.
_COMMENT: Final = 48
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_REFERENCE: Final = re.compile(r"\$\$?\{[a-z_]+:[^}]*\}")
#: A line, and the reason beside it.
YamlLine: TypeAlias = tuple[str, str | None]


def yaml_lines(lines: Iterable[YamlLine]) -> str:
    """The lines with their comments in a column."""
    texts = (
        f"{text:<{_COMMENT}} # {one_line(reason)}" if reason else text for text, reason in lines
    )
    return "".join(f"{text}\n" for text in texts)


def setting_line(indent: int, key: str, setting: ProposedSetting) -> YamlLine:
    """The line of a setting."""
    return f"{' ' * indent}{key}: {yaml_value(setting.value)}", setting.reason


def yaml_name(name: str) -> str:
    """A key in YAML; anything but a plain word is quoted, and so is `no`."""
    plain = name.isascii() and name.isidentifier() and name.lower() not in _WORDS
    return name if plain else _yaml_text(name)


def yaml_value(value: Any) -> str:
    """A value on one line of YAML. A text in it that looks like a reference is no reference."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(yaml_value, value)) + "]"
    if isinstance(value, str):
        return yaml_name(_REFERENCE.sub(lambda found: f"${found[0]}", value))
    return json.dumps(value)


def _yaml_text(text: str) -> str:
    """A text in double quotes; what cannot be printed is escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else _escaped(ord(c)) for c in quoted)


def _escaped(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    """A comment: names of columns may hold anything."""
    return "".join(c if c.isprintable() else "?" for c in text)
