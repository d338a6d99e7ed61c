"""Documents on disk: files read, and checked by the model of their `kind`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from polynya.model.documents.problems import Problem, located, shape_problems, suggest
from polynya.model.documents.references import MissingReference, plain_value
from polynya.model.documents.yaml import MapNode, Node, NodePath, Plain, read_document, read_text
from polynya.model.error_catalogue.bindings import VARIABLE_NOT_BOUND
from polynya.model.error_catalogue.configuration import (
    MISSING_KEY,
    MISSING_VARIABLE,
    NOT_SUPPORTED,
    WRONG_VALUE,
)
from polynya.model.errors import ConfigError
from polynya.model.names import shown

API_VERSION: Final = "polynya/v1"
_SUFFIXES: Final = frozenset({".yml", ".yaml", ".json"})
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """A file that could be read; `sound` is false when only its shape can still be checked.

    `unresolved` are the references that have no value, where none is needed. `instance` names
    the files of an instance and of its template, where the document is that of the template.
    """

    shown_as: str
    document: Node
    value: Plain
    sound: bool
    unresolved: tuple[MissingReference, ...] = ()
    instance: tuple[str, str] | None = None


def is_document(name: str) -> bool:
    """Tell whether a file of this name is read as a document."""
    return PurePosixPath(name).suffix in _SUFFIXES and not name.startswith(".")


def document_files(folder: Path) -> list[Path]:
    """Return the YAML and JSON files of a folder in name order; none when there is no folder."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if is_document(path.name) and path.is_file())


def read_file(
    path: Path,
    shown_as: str,
    variables: Mapping[str, str],
    errors: list[ConfigError],
    late: Callable[[NodePath], bool] = lambda _: False,
    *,
    bound: Mapping[str, str] | None = None,
    needless: Callable[[NodePath], bool] = lambda _: False,
) -> DocumentFile | None:
    """Read one file; what is wrong with it goes to `errors`.

    None when the rest of the file cannot be checked.

    Args:
        path: the file.
        shown_as: its name in errors.
        variables: those for `${env:NAME}`.
        errors: takes what is wrong.
        late: where references stay as they are until they are used.
        bound: variables for `${var:NAME}`, None where none may stand.
        needless: what the caller does not use, so that its references need no value.
    """
    try:
        document, yaml_errors = read_document(read_text(path, shown_as), shown_as)
    except ConfigError as error:
        errors.append(error)
        return None
    errors.extend(yaml_errors)
    value, found = plain_value(document, variables, late, bound=bound)
    problems = [one for one in found if not needless(one.path)]
    errors.extend(located(map(unresolved_problem, problems), document, shown_as))
    if problems:
        # A missing value would only cause errors that disappear with the first.
        return None
    return DocumentFile(shown_as, document, value, not yaml_errors, tuple(found))


def unresolved_problem(missing: MissingReference) -> Problem:
    """A reference without a value as a problem of its document."""
    if missing.unbound is None:
        return Problem(missing.path, MISSING_VARIABLE(missing.message))
    return Problem(missing.path, VARIABLE_NOT_BOUND(missing.message, variable=missing.unbound))


def parse_file(
    file: DocumentFile, model: type[_Model], kind: str, errors: list[ConfigError]
) -> _Model | None:
    """Return the model of a file, or None and what is wrong with it in `errors`."""
    return parse_kinds(file, {kind: model}, errors)


def parse_kinds(
    file: DocumentFile, models: Mapping[str, type[_Model]], errors: list[ConfigError]
) -> _Model | None:
    """Return the model of a file that its `kind` chooses, as `parse_file` does."""
    problems = list(_kind_problems(file, list(models)))
    if not problems and isinstance(file.value, dict):
        return parse_open(file, models[str(file.value["kind"])], errors)
    errors.extend(located(problems, file.document, file.shown_as))
    return None


def parse_open(file: DocumentFile, model: type[_Model], errors: list[ConfigError]) -> _Model | None:
    """Return the model of a file that need not say what it is, as `parse_file` does."""
    _build(model, set())
    try:
        return model.model_validate(file.value)
    except ValidationError as error:
        problems = shape_problems(error, model, file.value)
        errors.extend(located(problems, file.document, file.shown_as))
    return None


def _build(model: type[BaseModel], begun: set[type[BaseModel]]) -> None:
    """Build the validator of a model after those of the models in it.

    Start-up time: pydantic would build what is in several models again for each of them, which is
    two fifths of the time that it takes to load a project.
    """
    if model.__pydantic_complete__ or model in begun:
        return
    begun.add(model)
    for field in model.model_fields.values():
        for inner in _models_in(field.annotation):
            _build(inner, begun)
    model.model_rebuild()


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _kind_problems(file: DocumentFile, kinds: Sequence[str]) -> Iterator[Problem]:
    """Yield problems that make all others in the file meaningless."""
    if not isinstance(file.document, MapNode) or not isinstance(file.value, dict):
        message = "the file must be a mapping of keys to values"
        fix = f"begin with `apiVersion: {API_VERSION}` and `kind: {kinds[0]}`"
        yield Problem((), WRONG_VALUE(message, fix=fix))
        return
    for key, wanted in (("apiVersion", [API_VERSION]), ("kind", kinds)):
        value = file.value.get(key)
        if key not in file.value:
            fix = f"add the line {' or '.join(f'`{key}: {choice}`' for choice in wanted)}"
            yield Problem((), MISSING_KEY(fix=fix, key=shown(key)))
        elif value not in wanted:
            error = NOT_SUPPORTED(fix=suggest(value, wanted), value=shown(str(value)))
            yield Problem((key,), error)
