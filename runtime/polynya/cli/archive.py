"""`polynya export` and `import`: a project as one archive, without secrets and bindings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.engine.commands.validate import project_errors
from polynya.model.bindings import BINDINGS_VARIABLE
from polynya.model.config.aws import AwsAccess
from polynya.model.config.connection import ConnectionType
from polynya.model.error_catalogue.bindings import VARIABLE_NOT_BOUND
from polynya.model.error_catalogue.configuration import MISSING_KEY, MISSING_VARIABLE, WRONG_USAGE
from polynya.model.error_catalogue.qlik import DESTINATION_REFUSED
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.loader import load_project, target_names
from polynya.model.names import parse_location
from polynya.model.project_parts import CONNECTION_FOLDER
from polynya.observe.events import counted

_UNBOUND: Final = frozenset({VARIABLE_NOT_BOUND.code, MISSING_VARIABLE.code})


def export(project: Path, file: str, /, *, context: Context) -> int:
    """Write a project as one archive that may be passed on: a `.tar.gz`.

    It has `polynya.yml`, `tasks/`, `connections/` with their certificates, and `tests/`; no
    bindings, no data and nothing that Polynya keeps for itself. A file with a secret in it is named
    and no archive is written. The same files give the same bytes.

    For example: `polynya export shop shop.tar.gz`.

    Args:
        project: the project folder.
        file: the archive, which must not exist: a file, or `s3://BUCKET/KEY`.
    """
    # Start-up time: the store.
    from polynya.store import project_archive

    place = parse_location(file, Path.cwd(), "FILE")
    access = AwsAccess()
    if not isinstance(place, Path):
        access = load_project(project, context.options.target, tolerant=True).target.aws
    files = project_archive.export(project, place, access)
    text = f"{counted(len(files), 'file')} in {file}"
    context.output.result("export", {"archive": file, "files": files}, text)
    return ExitCode.OK


def import_(
    file: Path,
    directory: Path,
    /,
    *,
    from_: Annotated[Literal["polynya", "qlik"], Parameter(name="--from")] = "polynya",
    database: ConnectionType | None = None,
    context: Context,
) -> int:
    """Unpack an archive of `polynya export`, check it, and show which bindings are missing.

    The folder must be new or empty. An archive with links, with files that leave the folder, or
    with anything that is not a file of a project is refused, and nothing is written. Exit code 2
    if the project has errors, missing bindings aside.

    With `--from qlik` the source is an export of Qlik: the folder or the ZIP archive of a data
    integration project, or the JSON file of Replicate tasks. What has an equal is translated;
    each loss is named with its place, here and in `DIRECTORY-import.md`.

    For example: `polynya import shop.tar.gz shop`.

    Args:
        file: the archive, or the export of Qlik.
        directory: the project folder that is made.
        from_: what `file` is: an archive of `polynya export`, or an export of Qlik.
        database: with `--from qlik`: the type of databases whose type the export does not say,
            as a folder of a repository does not.
    """
    if from_ == "qlik":
        return _import_from_qlik(file, directory, database, context)
    if database is not None:
        raise WRONG_USAGE("`--database` belongs to `--from qlik`")
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


def _import_from_qlik(
    source: Path, directory: Path, database: ConnectionType | None, context: CommandContext
) -> int:
    # Start-up time: sqlglot.
    from polynya.qlik.importing import imported, without_refused

    made = imported(source, database)
    report = directory.with_name(f"{directory.name}-import.md")
    if report.exists():
        raise DESTINATION_REFUSED("there is a report of this name already", where=str(report))
    target = directory.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            complete = Path(scratch) / "project"
            # What reads a task that is refused is refused in the next round.
            for number in range(len(made.tasks) + 1):
                complete = Path(scratch) / f"project{number}"
                _write(complete, made.files())
                found = _errors_of(complete, "local")
                if not without_refused(made, [one for one in found if not _is_unbound(one)]):
                    break
            complete.rename(target)
            report.write_text(made.report.as_markdown(source.name), encoding="utf-8")
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise DESTINATION_REFUSED(
            "the folder cannot be written, or it is not empty", where=str(directory), why=why
        ) from None
    files = sorted(made.files())
    text = f"{made.report.as_text()}\n{counted(len(files), 'file')} in {directory}; {report.name}"
    data = {"directory": directory, "files": files, "lines": made.report.as_data()}
    context.output.result("import.qlik", data | made.report.counts, text)
    return ExitCode.OK


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


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
