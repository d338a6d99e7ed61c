"""`polynya export` and `import`: a project as one archive, without secrets and bindings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.plan import project_errors
from polynya.model.bindings import BINDINGS_VARIABLE
from polynya.model.error_catalogue.bindings import VARIABLE_NOT_BOUND
from polynya.model.error_catalogue.configuration import MISSING_KEY, MISSING_VARIABLE
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.loader import load_project, target_names
from polynya.model.project_parts import CONNECTION_FOLDER
from polynya.observe.events import counted

_UNBOUND: Final = frozenset({VARIABLE_NOT_BOUND.code, MISSING_VARIABLE.code})


def export(project: Path, file: Path, /, *, context: Context) -> int:
    """Write a project as one archive that may be passed on: a `.tar.gz`.

    It has `polynya.yml`, `tasks/`, `connections/` with their certificates, and `tests/`; no
    bindings, no data and nothing that Polynya keeps for itself. A file with a secret in it is named
    and no archive is written. The same files give the same bytes.

    For example: `polynya export shop shop.tar.gz`.

    Args:
        project: the project folder.
        file: the archive, which must not exist.
    """
    # Start-up time: the store.
    from polynya.store import project_archive

    files = project_archive.export(project, file)
    text = f"{counted(len(files), 'file')} in {file}"
    context.output.result("export", {"archive": file, "files": files}, text)
    return ExitCode.OK


def import_(file: Path, directory: Path, /, *, context: Context) -> int:
    """Unpack an archive of `polynya export`, check it, and show which bindings are missing.

    The folder must be new or empty. An archive with links, with files that leave the folder, or
    with anything that is not a file of a project is refused, and nothing is written. Exit code 2
    if the project has errors, missing bindings aside.

    For example: `polynya import shop.tar.gz shop`.

    Args:
        file: the archive.
        directory: the project folder that is made.
    """
    # Start-up time: the store.
    from polynya.store import project_archive

    files = project_archive.unpack(file, directory)
    text = f"{counted(len(files), 'file')} in {directory}"
    context.output.result("import", {"directory": directory, "files": files}, text)
    wrong: dict[str, ConfigError] = {}
    for target in target_names(directory):
        errors = list(_errors_of(directory, target))
        missing = [error for error in errors if _is_unbound(error)]
        wrong |= {str(error): error for error in errors if error not in missing}
        lines = [f"target {target}: {counted(len(missing), 'binding')} missing"]
        lines += [f"  {error.where}: {error.message}" for error in missing]
        data = {"target": target, "missing": [error.as_dict() for error in missing]}
        context.output.result("import.target", data, "\n".join(lines) if missing else None)
    for error in wrong.values():
        context.output.error(error)
    return ExitCode.USAGE if wrong else ExitCode.OK


def _errors_of(directory: Path, target: str) -> Iterator[ConfigError]:
    """Everything that is wrong with a project in a target."""
    environment = _environment_of(target)
    try:
        project = load_project(directory, target, tolerant=True, environment=environment)
    except ConfigErrors as errors:
        yield from errors.errors
        return
    yield from project_errors(project)[0]


def _environment_of(target: str) -> Mapping[str, str]:
    """The environment without the bindings of another target."""
    place = os.environ.get(BINDINGS_VARIABLE)
    if place is None or Path(place).is_dir() or Path(place).stem == target:
        return os.environ
    return {name: value for name, value in os.environ.items() if name != BINDINGS_VARIABLE}


def _is_unbound(error: ConfigError) -> bool:
    """Whether bindings or the environment can put an error right."""
    in_connection = (error.where or "").startswith(f"{CONNECTION_FOLDER}/")
    return error.code in _UNBOUND or (error.code == MISSING_KEY.code and in_connection)
