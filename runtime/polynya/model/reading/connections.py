"""Reading the connections of a project: `connections/NAME.yml` (.yaml, .json)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from polynya.model.checks.capture import connection_problems, target_problems
from polynya.model.config.capture.connection import Connection, ProjectFile
from polynya.model.config.project import Project
from polynya.model.contract.identifiers import is_name, shown
from polynya.model.documents.problems import Problem, located
from polynya.model.errors import ConfigError
from polynya.model.reading.document import DocumentFile, document_files, parse_open, read_file
from polynya.model.reading.secrets import is_read_at_use, written_logins

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
    """A connection with the absolute place of its certificates where they are of the project.

    Those are in `connections/`, wherever the project is read from. All others are files of the
    machine, which says where they may be when they are read.
    """
    ca = connection.tls.ca
    if ca is None or PurePosixPath(ca).parts[:-1] != (CONNECTION_FOLDER,) or not is_certificate(ca):
        return connection
    place = ProjectFile((directory / ca).absolute())
    return connection.model_copy(update={"tls": connection.tls.model_copy(update={"ca": place})})


def read_connections(
    directory: Path,
    project: Project | None,
    variables: Mapping[str, str],
    errors: list[ConfigError],
) -> dict[str, Connection | None]:
    """The connections by name; None for one that has something wrong, which goes to `errors`."""
    found: dict[str, Connection | None] = {}
    for path in document_files(directory / CONNECTION_FOLDER):
        shown_as = f"{CONNECTION_FOLDER}/{path.name}"
        name = PurePosixPath(path.name).stem
        if not is_name(name) or name in found:
            errors.append(_misnamed(shown_as, name, known=name in found))
            continue
        file = read_file(path, shown_as, variables, errors, is_read_at_use)
        found[name] = _connection(file, project, errors) if file is not None else None
    return found


def _connection(
    file: DocumentFile, project: Project | None, errors: list[ConfigError]
) -> Connection | None:
    connection = parse_open(file, Connection, errors)
    problems: list[Problem] = list(written_logins(file.document))
    if connection is not None:
        problems += connection_problems(connection)
        if project is not None:
            problems += target_problems(connection, project.targets)
    errors.extend(located(problems, file.document, file.shown_as))
    return connection if file.sound and not problems else None


def _misnamed(shown_as: str, name: str, *, known: bool) -> ConfigError:
    if known:
        return ConfigError(
            "POLYNYA-CFG-012",
            f"connection {shown(name)} is already defined",
            where=shown_as,
            fix="remove one of the files",
        )
    return ConfigError(
        "POLYNYA-CFG-010",
        f"{shown(name)} is not usable as the name of a connection",
        where=shown_as,
        fix="name the file with A-Z a-z 0-9 _, not starting with a digit",
    )
