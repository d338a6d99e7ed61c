"""Reading connections, landings, direct readers and secrets of a project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from polynya.model.config.connection import Connection, ProjectFile
from polynya.model.config.http_connection import HttpConnection
from polynya.model.config.registered import FOLDERS, RegisteredTask
from polynya.model.config.stream_landing import (
    DirectTask,
    StreamingLanding,
    holds_secrets,
    is_secret,
)
from polynya.model.config.task import StorageTask
from polynya.model.config.task_kinds import Task
from polynya.model.documents.problems import Problem
from polynya.model.documents.yaml import MapNode, Node, NodePath, ScalarNode, node_at
from polynya.model.error_catalogue.configuration import (
    SECRET_IN_FILE,
)
from polynya.model.error_catalogue.streams import (
    DIRECT_STREAM_HAS_NO_FILES,
    DIRECT_STREAM_SHARED,
    DIRECT_STREAM_UNREAD,
)
from polynya.model.errors import ConfigError
from polynya.model.names import parse_location, shown

#: A reference without a default, which would be a secret in the file.
_VARIABLE: Final = re.compile(r"\$\{env:[A-Za-z_][A-Za-z0-9_]*\}")
_REFERENCE: Final = re.compile(rf"{_VARIABLE.pattern}|\$\{{(?:file|secret):[^}}]+\}}")
#: What is left of `password="${env:NAME}"` without the reference is not a secret; anything else is.
_IN_WORDS: Final = re.compile(
    r"(?:password|secret|token)\s*=\s*(?:\"[^\"]+\"|'[^']+'|[^\s\"';]+)", re.IGNORECASE
)


#: Secrets of a catalog: what each is, and an example of a reference.
_OF_CATALOGS: Final = {
    "password": ("a password", 'password: "${env:CATALOG_PASSWORD}"'),
    "credential": ("a credential", 'credential: "${env:CATALOG_CREDENTIAL}"'),
    "token": ("a token", 'token: "${env:CATALOG_TOKEN}"'),
}


def written_secrets(project: Node) -> Iterator[Problem]:
    """Yield secrets of catalogs that are written out in a project file."""
    for name, target in entries(entry(project, "targets")):
        for key, (what, example) in _OF_CATALOGS.items():
            secret = entry(entry(target, "catalog"), key)
            if isinstance(secret, ScalarNode) and not _VARIABLE.fullmatch(str(secret.value)):
                yield Problem(
                    ("targets", name, "catalog", key),
                    SECRET_IN_FILE(what=what, fix=f"name an environment variable: `{example}`"),
                )


def written_passwords(task: Node) -> Iterator[Problem]:
    """Yield passwords of schema registries that are written out in a task file."""
    for path, registry in _registries(task, ()):
        password = entry(registry, "password")
        if isinstance(password, ScalarNode) and not _REFERENCE.fullmatch(str(password.value)):
            example = 'password: "${env:REGISTRY_PASSWORD}"'
            error = SECRET_IN_FILE(what="a password", example=example)
            yield Problem((*path, "password"), error)


def is_read_at_use(path: NodePath) -> bool:
    """Tell whether a value of a task may be a reference that is read at its use."""
    if path[:3] == ("source", "kafka", "properties"):
        return len(path) == 4
    if path[:3] == ("source", "files", "store"):
        return path[3:] in {("access_key_id",), ("secret_access_key",)}
    if path[:1] == ("mask",):
        return len(path) == 5 and path[3:] == ("hash", "key")
    if path[:1] == ("rules",):
        return len(path) == 5 and path[2:] == ("mask", "hash", "key")
    return path[-2:] in {("schema_registry", "user"), ("schema_registry", "password")}


def written_store_keys(task: Node) -> Iterator[Problem]:
    """Yield the key of a store that is written out in a task file."""
    path = ("source", "files", "store", "secret_access_key")
    example = 'secret_access_key: "${env:STORE_SECRET}"'
    yield from _written_out(path, node_at(task, path), "a key", example)


def written_keys(task: Node) -> Iterator[Problem]:
    """Yield keys of hashes that are written out in a task file."""
    for table, columns in entries(entry(task, "mask")):
        for column, mask in entries(columns):
            key = entry(entry(mask, "hash"), "key")
            path = ("mask", table, column, "hash", "key")
            yield from _written_out(path, key, "a key", "key: {env: HASH_KEY}")


def _written_out(path: NodePath, node: Node | None, what: str, example: str) -> Iterator[Problem]:
    if is_written_out(node):
        yield Problem(path, SECRET_IN_FILE(what=what, example=example))


def is_written_out(node: Node | None) -> bool:
    """Whether a value that has to be a reference is anything else."""
    if not isinstance(node, ScalarNode) or node.value is None:
        return False
    return not _REFERENCE.fullmatch(str(node.value))


def lacks_reference(node: Node | None) -> bool:
    """Whether a text that has to name its secret by a reference, perhaps among words, does not."""
    return isinstance(node, ScalarNode) and _REFERENCE.search(str(node.value)) is None


def words_hold_secret(node: Node | None) -> bool:
    """Whether a text with a login in it, such as that of JAAS, holds a secret in words."""
    text = str(node.value) if isinstance(node, ScalarNode) else ""
    return _IN_WORDS.search(_REFERENCE.sub('""', text)) is not None


def _registries(node: Node | None, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    for key, value in entries(node):
        if key == "schema_registry":
            yield (*path, key), value
        else:
            yield from _registries(value, (*path, key))


def written_properties(task: Node) -> Iterator[Problem]:
    """Yield secrets of a Kafka client that are written out in a task file."""
    properties = entry(entry(entry(task, "source"), "kafka"), "properties")
    for name, value in entries(properties):
        whole = is_secret(name) and is_written_out(value)
        if whole or (holds_secrets(name) and words_hold_secret(value)):
            error = SECRET_IN_FILE(what="a secret", example='"${env:KAFKA_PASSWORD}"')
            yield Problem(("source", "kafka", "properties", name), error)


def entry(node: Node | None, key: str) -> Node | None:
    """The value of a key; None without the key or the mapping."""
    return dict(entries(node)).get(key)


def entries(node: Node | None) -> Iterator[tuple[str, Node]]:
    """Yield the entries of a mapping; none of anything else."""
    if isinstance(node, MapNode):
        for key, (_, value) in node.entries.items():
            yield key, value


def unread_problem(task: StreamingLanding, tasks: Sequence[Task]) -> Iterator[Problem]:
    """Yield that no task reads a direct landing. `tasks` are those of all files."""
    if not any(
        isinstance(reader, DirectTask) and reader.reads.name == task.name for reader in tasks
    ):
        yield Problem(("direct",), DIRECT_STREAM_UNREAD(task=task.name))


def reader_problems(task: StorageTask, places: Mapping[str, str]) -> Iterator[Problem]:
    """Yield why a task cannot read files of a folder. `places` are those of direct landings."""
    landing = task.landing
    if landing.format == "stream" and landing.path in places and not isinstance(task, DirectTask):
        yield Problem(
            ("landing", "path"),
            DIRECT_STREAM_HAS_NO_FILES(
                landing=shown(places[landing.path]), folder=shown(landing.path)
            ),
        )


def sharing_problems(
    task: StorageTask, file: str, readers: dict[tuple[str, str], str]
) -> Iterator[Problem]:
    """Yield that another transform reads the same table of a direct landing.

    `readers` are those so far, by landing and table, with their files; this one is added.
    """
    if not isinstance(task, DirectTask):
        return
    place = (task.reads.name, task.reads_table)
    other = readers.setdefault(place, file)
    if other != file:
        yield Problem(
            ("from",),
            DIRECT_STREAM_SHARED(
                file=other, table=shown(task.reads_table), landing=shown(task.reads.name)
            ),
        )


def with_places(task: StreamingLanding, directory: Path) -> tuple[StreamingLanding, list[Problem]]:
    """The task with the absolute location of its files, or why that location is not valid.

    A folder is relative to `directory`.
    """
    files = task.source.files
    if files is None:
        return task, []
    path = ("source", "files", "url")
    try:
        place = parse_location(files.url, directory, ".".join(path))
    except ConfigError as error:
        return task, [Problem(path, error)]
    placed = files.model_copy(update={"url": str(place)})
    source = task.source.model_copy(update={"files": placed})
    return task.model_copy(update={"source": source}), []


def with_folders(task: RegisteredTask, directory: Path) -> tuple[RegisteredTask, list[Problem]]:
    """The task with absolute folders, or why one is not valid; they are relative to `directory`."""
    tables, problems = [], []
    for index, table in enumerate(task.tables):
        for form in FOLDERS:
            try:
                if (folder := getattr(table, form)) is not None:
                    place = parse_location(folder, directory, form)
                    table = table.model_copy(update={form: str(place)})  # noqa: PLW2901
            except ConfigError as error:
                problems.append(Problem(("tables", index, form), error))
        tables.append(table)
    return task.model_copy(update={"tables": tuple(tables)}), problems


CONNECTION_FOLDER: Final = "connections"


def is_certificate(name: str) -> bool:
    """Whether a file of this name beside the connections has certificates of an authority."""
    return PurePosixPath(name).suffix == ".pem" and not name.startswith(".")


def certificate_files(folder: Path) -> list[Path]:
    """The files of certificates in a folder, in name order; none when there is no folder."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if is_certificate(path.name) and path.is_file())


def with_files(connection: Connection, directory: Path) -> Connection:
    """A connection with the absolute path of its certificates if they belong to the project.

    Those are in `connections/`, wherever the project is read from. All others are files of the
    machine, which decides where they may be when they are read.
    """
    place = _own_certificates(connection.tls.ca, directory)
    if place is None:
        return connection
    return connection.model_copy(update={"tls": connection.tls.model_copy(update={"ca": place})})


def with_own_ca(connection: HttpConnection, directory: Path) -> HttpConnection:
    """A connection to an API likewise."""
    place = _own_certificates(connection.ca, directory)
    return connection if place is None else connection.model_copy(update={"ca": place})


def _own_certificates(ca: str | None, directory: Path) -> ProjectFile | None:
    if ca is None or PurePosixPath(ca).parts[:-1] != (CONNECTION_FOLDER,) or not is_certificate(ca):
        return None
    return ProjectFile((directory / ca).absolute())
