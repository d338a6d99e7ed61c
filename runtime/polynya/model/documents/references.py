"""References in values: `${env:NAME}`, `${var:NAME}`, `${file:PATH}` and `${secret:NAME}`.

`${env:NAME}` and `${env:NAME:-default}` are resolved after parsing, in values only, never in keys
or structure. So the content of an environment variable cannot add a setting. `$${env:NAME}` stays
as the text `${env:NAME}`. `${var:NAME}` is the same for a variable that the bindings of the target
bind; what it brings is text, in which nothing is a reference.

`${file:PATH}` and `${secret:NAME}` are allowed only where a setting holds a secret; elsewhere they
are an error. They are read at each use; until then the setting is the text as written, so no dump
or comparison of settings contains the secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from polynya.model.documents.yaml import ListNode, MapNode, Node, NodePath, Plain
from polynya.model.names import shown

Provider: TypeAlias = Literal["file", "secret"]

LATE_PROVIDERS: Final = ("file", "secret")

#: With a second `$` it is the text itself.
_LATE_REFERENCE: Final = re.compile(r"\$(\$?)\{(file|secret):([^}]*)\}")
_ENTRY: Final = re.compile(r"([A-Za-z0-9/_+=.@:-]{1,2048})(?:#([^#}]+))?")


@dataclass(frozen=True, slots=True)
class LateReference:
    """What is read: a file, or an entry of Secrets Manager and perhaps a field of its JSON."""

    provider: Provider
    place: str
    field: str | None = None

    def __str__(self) -> str:
        """The reference as it is written."""
        return f"${{{self.provider}:{self.place}{f'#{self.field}' if self.field else ''}}}"


def late_reference(provider: str, rest: str) -> LateReference | str:
    """The reference, or what is wrong with it."""
    written = shown(f"${{{provider}:{rest}}}")
    if provider == "file":
        right = rest.startswith("/") and ".." not in rest.split("/") and rest.isprintable()
        return LateReference("file", rest) if right else f"{written} names no absolute path"
    entry = _ENTRY.fullmatch(rest)
    if entry is None:
        return f"{written} names no secret; write `${{secret:NAME}}` or `${{secret:NAME#FIELD}}`"
    return LateReference("secret", *entry.groups())


def kept_as_text(value: str) -> str:
    """A value in which nothing is a reference, to stand beside references."""
    return _LATE_REFERENCE.sub(lambda found: f"${found[0]}", value)


def late_references(text: str) -> set[str]:
    """The providers of the references in a text that are read at its use."""
    found = _LATE_REFERENCE.findall(text)
    return {provider for escaped, provider, _ in found if not escaped}


def opened(text: str, read: Callable[[LateReference], str]) -> str:
    """A text with its references replaced by what `read` gives."""

    def replace(match: re.Match[str]) -> str:
        escaped, provider, rest = match.groups()
        if escaped:
            return match[0][1:]
        reference = late_reference(provider, rest)
        return read(reference) if isinstance(reference, LateReference) else match[0]

    return _LATE_REFERENCE.sub(replace, text)


_REFERENCE: Final = re.compile(r"\$(\$?)\{([a-z_]+):([^}]*)\}")
_VARIABLE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MissingReference:
    """A reference that cannot be resolved: where it stands, and why.

    `unbound` is the variable of the bindings that it names, None for other problems.
    """

    path: NodePath
    message: str
    unbound: str | None = None


def plain_value(
    node: Node,
    environment: Mapping[str, str],
    late: Callable[[NodePath], bool] = lambda _: False,
    *,
    bound: Mapping[str, str] | None = None,
) -> tuple[Plain, list[MissingReference]]:
    """Return a document as plain values, references resolved, and those that cannot be.

    Args:
        node: the document.
        environment: variables for `${env:NAME}`.
        late: where references that are read at their use may stand.
        bound: variables for `${var:NAME}`; None: none can stand in this document.
    """
    problems: list[MissingReference] = []

    def convert(node: Node, path: NodePath) -> Plain:
        if isinstance(node, MapNode):
            return {key: convert(value, (*path, key)) for key, (_, value) in node.entries.items()}
        if isinstance(node, ListNode):
            return [convert(item, (*path, index)) for index, item in enumerate(node.items)]
        if not isinstance(node.value, str):
            return node.value
        text, found = _resolved(node.value, environment, bound, late=late(path))
        problems.extend(MissingReference(path, *problem) for problem in found)
        return text

    return convert(node, ()), problems


def interpolate(
    text: str, environment: Mapping[str, str], *, late: bool = False
) -> tuple[str, list[str]]:
    """Return a text with its references resolved, and a message for each that cannot be.

    `late`: references that are read at their use may stand in it.
    """
    value, problems = _resolved(text, environment, None, late=late)
    return value, [message for message, _ in problems]


def bound_variables(node: Node, path: NodePath = ()) -> Iterator[tuple[str, NodePath]]:
    """Yield the variables of bindings that a document names, each with where it does."""
    if isinstance(node, MapNode):
        for key, (_, value) in node.entries.items():
            yield from bound_variables(value, (*path, key))
    elif isinstance(node, ListNode):
        for index, item in enumerate(node.items):
            yield from bound_variables(item, (*path, index))
    elif isinstance(node.value, str):
        for escaped, provider, rest in _REFERENCE.findall(node.value):
            variable = _VARIABLE.fullmatch(rest)
            if provider == "var" and not escaped and variable is not None:
                yield variable[1], path


def _resolved(
    text: str, environment: Mapping[str, str], bound: Mapping[str, str] | None, *, late: bool
) -> tuple[str, list[tuple[str, str | None]]]:
    """A text with its references resolved; problems with the variable that is not bound."""
    problems: list[tuple[str, str | None]] = []

    def replace(match: re.Match[str]) -> str:
        escaped, provider, rest = match.groups()
        if late and provider in LATE_PROVIDERS:
            reference = late_reference(provider, rest)
            if isinstance(reference, str) and not escaped:
                problems.append((reference, None))
            return match[0]
        if escaped:
            return match[0][1:]
        variable = _VARIABLE.fullmatch(rest)
        if provider in LATE_PROVIDERS:
            where = "only in properties of Kafka, logins and keys of masks"
            problems.append((f"{shown(match[0])} cannot stand here, {where}", None))
            return match[0]
        if variable is None or provider not in {"env", "var"}:
            message = f"{shown(match[0])} is not a reference; write `${{env:NAME}}`"
            problems.append((message, None))
            return match[0]
        if provider == "var" and bound is None:
            problems.append((f"{shown(match[0])} cannot stand here, only in a project", None))
            return match[0]
        name, default = variable.groups()
        values = environment if provider == "env" else bound or {}
        # Like a shell's `:-`: an empty variable takes the default, too.
        value = values.get(name) or default
        if value is None:
            value = values.get(name)
        if value is None and provider == "var":
            problems.append((f"variable `{name}` is not bound", name))
            return match[0]
        if value is None:
            problems.append((f"environment variable `{name}` is not set", None))
            return match[0]
        return kept_as_text(value) if late else value

    return _REFERENCE.sub(replace, text), problems
