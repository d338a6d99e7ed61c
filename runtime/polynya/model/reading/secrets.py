"""Secrets of project and task files: they come from the environment and never stand in a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from polynya.model.documents.nodes import MapNode, Node, ScalarNode
from polynya.model.documents.problems import Problem

#: A reference without a default, which would be a secret in the file.
_REFERENCE: Final = re.compile(r"\$\{env:[A-Za-z_][A-Za-z0-9_]*\}")


def written_secrets(project: Node) -> Iterator[Problem]:
    """Passwords of targets that are written out in a project file."""
    for name, target in _entries(_entry(project, "targets")):
        password = _entry(_entry(target, "catalog"), "password")
        if isinstance(password, ScalarNode) and not _REFERENCE.fullmatch(str(password.value)):
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
                f"{'.'.join(place)}: a password is written in the file",
                'name a variable of the environment: `password: "${env:REGISTRY_PASSWORD}"`',
            )


def _registries(node: Node | None, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    for key, value in _entries(node):
        if key == "schema_registry":
            yield (*path, key), value
        else:
            yield from _registries(value, (*path, key))


def _entry(node: Node | None, key: str) -> Node | None:
    return dict(_entries(node)).get(key)


def _entries(node: Node | None) -> Iterator[tuple[str, Node]]:
    if isinstance(node, MapNode):
        for key, (_, value) in node.entries.items():
            yield key, value
