"""Secrets of project and task files: they stand elsewhere, and the file names where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from polynya.model.config.streaming.kafka import holds_secrets, is_secret
from polynya.model.documents.nodes import MapNode, Node, Path, ScalarNode
from polynya.model.documents.problems import Problem

#: A reference without a default, which would be a secret in the file.
_VARIABLE: Final = re.compile(r"\$\{env:[A-Za-z_][A-Za-z0-9_]*\}")
_REFERENCE: Final = re.compile(rf"{_VARIABLE.pattern}|\$\{{(?:file|secret):[^}}]+\}}")
#: What is left of `password="${env:NAME}"` without the reference is no secret; anything else is.
_IN_WORDS: Final = re.compile(
    r"(?:password|secret|token)\s*=\s*(?:\"[^\"]+\"|'[^']+'|[^\s\"';]+)", re.IGNORECASE
)


def written_secrets(project: Node) -> Iterator[Problem]:
    """Passwords of targets that are written out in a project file."""
    for name, target in _entries(_entry(project, "targets")):
        password = _entry(_entry(target, "catalog"), "password")
        if isinstance(password, ScalarNode) and not _VARIABLE.fullmatch(str(password.value)):
            yield Problem(
                ("targets", name, "catalog", "password"),
                "POLYNYA-CFG-035",
                f"targets.{name}.catalog.password: a password is written in the file",
                'name a variable of the environment: `password: "${env:CATALOG_PASSWORD}"`',
            )


def written_passwords(task: Node) -> Iterator[Problem]:
    """Passwords of schema registries that are written out in a task file."""
    for path, registry in _registries(task, ()):
        password = _entry(registry, "password")
        if isinstance(password, ScalarNode) and not _REFERENCE.fullmatch(str(password.value)):
            place = (*path, "password")
            yield Problem(
                place,
                "POLYNYA-CFG-035",
                "a password is written in the file",
                'name where it stands: `password: "${env:REGISTRY_PASSWORD}"`, `${file:PATH}` or '
                "`${secret:NAME}`",
            )


def is_read_at_use(path: Path) -> bool:
    """Tell whether a value of a task file may be a reference that is read where it is used."""
    if path[:3] == ("source", "kafka", "properties"):
        return len(path) == 4
    return path[-2:] in {("schema_registry", "user"), ("schema_registry", "password")}


def _registries(node: Node | None, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    for key, value in _entries(node):
        if key == "schema_registry":
            yield (*path, key), value
        else:
            yield from _registries(value, (*path, key))


def written_properties(task: Node) -> Iterator[Problem]:
    """Secrets of a Kafka client that are written out in a task file."""
    properties = _entry(_entry(_entry(task, "source"), "kafka"), "properties")
    for name, value in _entries(properties):
        text = str(value.value) if isinstance(value, ScalarNode) else ""
        whole = is_secret(name) and not _REFERENCE.fullmatch(text)
        if whole or (holds_secrets(name) and _IN_WORDS.search(_REFERENCE.sub('""', text))):
            yield Problem(
                ("source", "kafka", "properties", name),
                "POLYNYA-CFG-035",
                "a secret is written in the file",
                'name where it stands in its place: `"${env:KAFKA_PASSWORD}"`, `${file:PATH}` or '
                "`${secret:NAME}`",
            )


def _entry(node: Node | None, key: str) -> Node | None:
    return dict(_entries(node)).get(key)


def _entries(node: Node | None) -> Iterator[tuple[str, Node]]:
    if isinstance(node, MapNode):
        for key, (_, value) in node.entries.items():
            yield key, value
