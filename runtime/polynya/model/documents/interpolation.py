"""`${env:NAME}` and `${env:NAME:-default}` in configuration values, resolved after parsing.

Only values are touched, never keys or structure, so nothing that an environment variable holds can
add a setting. `$${env:NAME}` stays as the text `${env:NAME}`. References that are read where they
are used (`late_references.py`) stay as they are where such may stand, and are wrong elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from polynya.model.contract.identifiers import shown
from polynya.model.documents.late_references import (
    LATE_PROVIDERS,
    kept_as_text,
    late_reference,
)
from polynya.model.documents.nodes import ListNode, MapNode, Node, Path, Plain

_REFERENCE: Final = re.compile(r"\$(\$?)\{([a-z_]+):([^}]*)\}")
_VARIABLE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def plain_value(
    node: Node, environment: Mapping[str, str], late: Callable[[Path], bool] = lambda _: False
) -> tuple[Plain, list[tuple[Path, str]]]:
    """Return a document as plain values, references resolved; `(path, message)` per problem.

    `late` tells where references that are read at their use may stand.
    """
    problems: list[tuple[Path, str]] = []

    def convert(node: Node, path: Path) -> Plain:
        if isinstance(node, MapNode):
            return {key: convert(value, (*path, key)) for key, (_, value) in node.entries.items()}
        if isinstance(node, ListNode):
            return [convert(item, (*path, index)) for index, item in enumerate(node.items)]
        if not isinstance(node.value, str):
            return node.value
        text, messages = interpolate(node.value, environment, late=late(path))
        problems.extend((path, message) for message in messages)
        return text

    return convert(node, ()), problems


def interpolate(
    text: str, environment: Mapping[str, str], *, late: bool = False
) -> tuple[str, list[str]]:
    """Return a text with its references resolved, and a message for each that cannot be.

    `late`: references that are read at their use may stand in it.
    """
    messages: list[str] = []

    def replace(match: re.Match[str]) -> str:
        escaped, provider, rest = match.groups()
        if late and provider in LATE_PROVIDERS:
            reference = late_reference(provider, rest)
            if isinstance(reference, str) and not escaped:
                messages.append(reference)
            return match[0]
        if escaped:
            return match[0][1:]
        variable = _VARIABLE.fullmatch(rest)
        if provider in LATE_PROVIDERS:
            where = "only in properties of Kafka, logins and keys of masks"
            messages.append(f"{shown(match[0])} cannot stand here, {where}")
            return match[0]
        if provider != "env" or variable is None:
            messages.append(f"{shown(match[0])} is no reference; write `${{env:NAME}}`")
            return match[0]
        name, default = variable.groups()
        # Like a shell's `:-`: an empty variable takes the default, too.
        value = environment.get(name) or default
        if value is None:
            value = environment.get(name)
        if value is None:
            messages.append(f"environment variable `{name}` is not set")
            return match[0]
        return kept_as_text(value) if late else value

    return _REFERENCE.sub(replace, text), messages
