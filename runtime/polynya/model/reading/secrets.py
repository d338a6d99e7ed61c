"""Secrets of project, task and connection files: they stand elsewhere, and the file names where."""

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
#: Settings of a connection that may be references.
_LOGIN: Final = ("user", "password")
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
    """Tell whether a value of a task or connection may be a reference that is read at its use."""
    if path[:3] == ("source", "kafka", "properties"):
        return len(path) == 4
    if path[:1] in {("user",), ("password",)}:
        return len(path) == 1
    if path[:1] == ("targets",):
        return len(path) == 3 and path[2] in _LOGIN
    if path[:1] == ("mask",):
        return len(path) == 5 and path[3:] == ("hash", "key")
    return path[-2:] in {("schema_registry", "user"), ("schema_registry", "password")}


def written_logins(connection: Node) -> Iterator[Problem]:
    """Passwords that are written out in the file of a connection."""
    found: list[tuple[Path, Node | None]] = [(("password",), _entry(connection, "password"))]
    for name, there in _entries(_entry(connection, "targets")):
        found.append((("targets", name, "password"), _entry(there, "password")))
    for path, node in found:
        yield from _written_out(path, node, "a password", "password: {env: DB_PASSWORD}")


def written_keys(task: Node) -> Iterator[Problem]:
    """Keys of hashes that are written out in a task file."""
    for table, columns in _entries(_entry(task, "mask")):
        for column, mask in _entries(columns):
            key = _entry(_entry(mask, "hash"), "key")
            path = ("mask", table, column, "hash", "key")
            yield from _written_out(path, key, "a key", "key: {env: HASH_KEY}")


def _written_out(path: Path, node: Node | None, what: str, example: str) -> Iterator[Problem]:
    if not isinstance(node, ScalarNode) or node.value is None:
        return
    if not _REFERENCE.fullmatch(str(node.value)):
        yield Problem(
            path,
            "POLYNYA-CFG-035",
            f"{what} is written in the file",
            f"name where it stands: `{example}`, `${{file:PATH}}` or `${{secret:NAME#FIELD}}`",
        )


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
