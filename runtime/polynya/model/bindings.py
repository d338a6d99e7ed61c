"""The bindings of a target: finding `TARGET.yml`, in the project or outside, and reading it.

One file is in force. That which the operator names, by `--bindings` or `POLYNYA_BINDINGS`, replaces
the one in the project; nothing is merged, so that a look at one file tells what is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final

from polynya.model.config.bindings import Bindings, VariableValue
from polynya.model.connection_kinds import ALL_REFERENCES, fits
from polynya.model.documents.files import (
    DocumentFile,
    document_files,
    is_document,
    parse_open,
    read_file,
)
from polynya.model.documents.problems import suggest
from polynya.model.documents.references import bound_variables
from polynya.model.documents.yaml import NodePath, Plain, position_of
from polynya.model.error_catalogue.bindings import BINDINGS_UNUSABLE
from polynya.model.error_catalogue.configuration import NO_SUCH_TARGET
from polynya.model.errors import ConfigError
from polynya.model.names import shown

BINDINGS_FOLDER: Final = "bindings"
#: Names a folder of bindings, or the bindings of one target.
BINDINGS_VARIABLE: Final = "POLYNYA_BINDINGS"


@dataclass(frozen=True, slots=True)
class TargetBindings:
    """What is bound in a target.

    Args:
        file: the file in force; None: nothing is bound.
        outside: folder of the file if it is not in the project.
        variables: values of `${var:NAME}`.
        connections: settings by the name of the connection.
        replaced: the file of the project that is not in force, since another one is named.
    """

    file: DocumentFile | None = None
    outside: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    connections: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
    replaced: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectReader:
    """Reads the files of a project as one target has them.

    `errors` takes what is wrong; `uses` takes the variables of bindings that files name, with
    `file:line:col` of each place.
    """

    environment: Mapping[str, str]
    bindings: TargetBindings
    errors: list[ConfigError]
    uses: dict[str, list[str]] = field(default_factory=dict)

    def read(
        self,
        path: Path,
        shown_as: str,
        late: Callable[[NodePath], bool] = lambda _: False,
        needless: Callable[[NodePath], bool] = lambda _: False,
        *,
        stays_unresolved: bool = False,
    ) -> DocumentFile | None:
        """Read one file, as `read_file` does.

        With `stays_unresolved` the caller decides which references need a value; those that are
        `needless` do not count as uses of a variable.
        """
        file = read_file(
            path,
            shown_as,
            self.environment,
            self.errors,
            late,
            bound=self.bindings.variables,
            needless=(lambda _: True) if stays_unresolved else needless,
        )
        if file is not None:
            for name, place in bound_variables(file.document):
                if not needless(place):
                    at = position_of(file.document, place)
                    self.uses.setdefault(name, []).append(f"{shown_as}:{at.line}:{at.column}")
        return file


def read_bindings(
    directory: Path,
    target: str,
    targets: Collection[str],
    environment: Mapping[str, str],
    errors: list[ConfigError],
) -> TargetBindings | None:
    """The bindings of a target; None if something is wrong with them, which goes to `errors`.

    Args:
        directory: the project folder.
        target: name of the target.
        targets: names of all targets of the project.
        environment: variables for `${env:NAME}`, and `POLYNYA_BINDINGS`.
        errors: takes what is wrong with any file of bindings of the project.
    """
    before = len(errors)
    own = _own(directory / BINDINGS_FOLDER, target, targets, errors)
    named = environment.get(BINDINGS_VARIABLE)
    there = _named(Path(named).absolute(), target, errors) if named else None
    if len(errors) > before:
        return None
    path = there or own
    if path is None:
        return TargetBindings()
    shown_as = str(path) if there else f"{BINDINGS_FOLDER}/{path.name}"
    file = read_file(path, shown_as, environment, errors, _is_read_at_use)
    bindings = parse_open(file, Bindings, errors) if file is not None else None
    if file is None or bindings is None or not file.sound:
        return None
    replaced = f"{BINDINGS_FOLDER}/{own.name}" if there and own else None
    return TargetBindings(
        file=file,
        outside=path.parent if there else None,
        variables={name: _text(value) for name, value in bindings.variables.items()},
        connections=bindings.connections,
        replaced=replaced,
    )


def _is_read_at_use(path: NodePath) -> bool:
    return path[:1] == ("connections",) and fits(path[2:], ALL_REFERENCES)


def _own(
    folder: Path, target: str, targets: Collection[str], errors: list[ConfigError]
) -> Path | None:
    """The file of the project for a target; errors for files that no target has."""
    found: list[Path] = []
    for path in document_files(folder):
        if path.stem == target:
            found.append(path)
        elif path.stem not in targets:
            where, fix = f"{BINDINGS_FOLDER}/{path.name}", suggest(path.stem, sorted(targets))
            errors.append(NO_SUCH_TARGET(where=where, fix=fix, target=shown(path.stem)))
    return _one_of(found, target, errors)


def _named(place: Path, target: str, errors: list[ConfigError]) -> Path | None:
    """The file of a target at the place that an operator names."""
    if place.is_dir():
        found = [path for path in document_files(place) if path.stem == target]
        return _one_of(found, target, errors)
    if not place.is_file():
        errors.append(
            BINDINGS_UNUSABLE(
                "there is neither a file nor a folder of bindings",
                where=str(place),
                fix="correct `--bindings` or `POLYNYA_BINDINGS`",
            )
        )
        return None
    if place.stem != target or not is_document(place.name):
        errors.append(
            BINDINGS_UNUSABLE(
                f"the bindings are not those of the target {shown(target)}",
                where=str(place),
                fix=f"name a file that is called `{target}.yml`, or choose its target with "
                "`--target`",
            )
        )
        return None
    return place


def _one_of(found: list[Path], target: str, errors: list[ConfigError]) -> Path | None:
    if len(found) > 1:
        names = " and ".join(PurePath(path).name for path in found)
        message = f"the target {shown(target)} has more than one file of bindings: {names}"
        errors.append(
            BINDINGS_UNUSABLE(message, where=str(found[0].parent), fix="keep one of them")
        )
        return None
    return found[0] if found else None


def _text(value: VariableValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
