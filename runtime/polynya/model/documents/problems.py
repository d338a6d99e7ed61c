"""From what is wrong with a document to ConfigErrors with a place, a path and a way out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from polynya.model.contract.identifiers import shown
from polynya.model.documents.cut_types import cut_types
from polynya.model.documents.nodes import Node, Path, Plain, dotted, place_of
from polynya.model.documents.wording import worded
from polynya.model.errors import ConfigError

_CODES: Final = {
    "extra_forbidden": "POLYNYA-CFG-007",
    "missing": "POLYNYA-CFG-008",
    "polynya_name": "POLYNYA-CFG-010",
    "polynya_path": "POLYNYA-CFG-011",
    "polynya_type": "POLYNYA-CFG-020",
    "polynya_layout": "POLYNYA-CFG-040",
}
_OTHER_CODE: Final = "POLYNYA-CFG-009"
#: Errors about a key and not about its value; one place may have several.
_KEYS: Final = frozenset({"extra_forbidden", "missing"})
_QUOTED: Final = re.compile(r"'([^']*)'")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong at a path of a document."""

    path: Path
    code: str
    message: str
    fix: str | None = None


def located(problems: Iterable[Problem], root: Node, file: str) -> list[ConfigError]:
    """Turn problems into errors that say `file:line:col` and the key path."""
    errors = []
    placed = [(place_of(root, problem.path), problem) for problem in problems]
    for place, problem in sorted(placed, key=lambda pair: (pair[0].line, pair[0].column)):
        path = dotted(problem.path)
        errors.append(
            ConfigError(
                problem.code,
                f"{path}: {problem.message}" if path else problem.message,
                where=f"{file}:{place.line}:{place.column}",
                fix=problem.fix,
            )
        )
    return errors


def shape_problems(
    error: ValidationError, model: type[BaseModel], value: Plain
) -> Iterator[Problem]:
    """Yield what the validation of a document by the given model found, once for each place."""
    said: set[tuple[Path, str]] = set()
    cut = cut_types(value)
    details = error.errors(include_url=False)
    for detail in details:
        if detail["type"] == "too_short" and _has_wrong_items(detail, details):
            continue
        path = _written(value, detail["loc"])
        if path in cut:
            problem = _cut_type(path, cut[path])
        else:
            problem = _problem(detail, model, value, path)
        # Of a value that may be of several kinds, what each of them says is one problem.
        key = (path, problem.message if detail["type"] in _KEYS else "")
        if problem.message and key not in said:
            said.add(key)
            yield problem


def _written(value: Plain, place: Sequence[int | str]) -> Path:
    """The part of a place that is written in the document: the rest are kinds of a value."""
    path: list[str | int] = []
    for part in place:
        if isinstance(value, dict) and part in value:
            value = value[str(part)]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            break
        path.append(part)
    return tuple(path)


def _cut_type(path: Path, text: str) -> Problem:
    """A type with a comma that is not in quotes; nothing for the pieces that it fell into."""
    name = path[-1]
    return Problem(
        path,
        _CODES["polynya_type"],
        "a type with a comma needs quotes inside { }" if text else "",
        f'quote it: `{name}: "{text}"`',
    )


def _problem(detail: ErrorDetails, model: type[BaseModel], value: Plain, path: Path) -> Problem:
    kind = detail["type"]
    code = _CODES.get(kind, _OTHER_CODE)
    if kind == "extra_forbidden":
        allowed = _keys_at(model, path[:-1])
        return Problem(
            path, code, f"unknown key {shown(str(path[-1]))}", suggest(path[-1], allowed)
        )
    if kind == "missing":
        key = str(detail["loc"][-1])
        meaning = _meaning(model, (*path, key))
        return Problem(path, code, f"missing key {shown(key)}", f"add it. {meaning}")
    choices = _QUOTED.findall(str(detail.get("ctx", {}).get("expected", "")))
    written = _value_at(value, path)
    if choices:
        message, fix = worded("literal_error", written, {})
        return Problem(path, code, message, suggest(written, choices))
    message, fix = worded(kind, written, detail.get("ctx", {}))
    keys = _keys_at(model, path) if kind.startswith("model") else []
    if keys:
        fix = suggest(written, keys)
    return Problem(path, code, message, fix or _meaning(model, path))


def _value_at(value: Plain, path: Path) -> Plain:
    for part in path:
        value = value[part]  # type: ignore[index]
    return value


def _meaning(model: type[BaseModel], path: Path) -> str:
    """What a setting is for, as the reference says it."""
    keys = [part for part in path if isinstance(part, str)]
    for end in range(len(keys), 0, -1):
        field = _field_at(model, keys[:end])
        if field is not None and field.description:
            return f"`{keys[end - 1]}`: {field.description.rstrip('.')}"
    return "see the reference of project and task files"


def _field_at(model: type[BaseModel], keys: Sequence[str]) -> FieldInfo | None:
    """The field that a path of keys ends at; None for the key of a mapping."""
    current: type[BaseModel] | None = model
    field: FieldInfo | None = None
    for key in keys:
        fields = current.model_fields if current is not None else {}
        field = next((one for name, one in fields.items() if (one.alias or name) == key), None)
        if field is not None:
            current = _model_in(field.annotation)
    return field


def suggest(word: object, allowed: Sequence[str]) -> str | None:
    """Return "did you mean …? allowed here: …" for a word that is none of the allowed ones."""
    if not allowed:
        return None
    # difflib is quadratic in the length of the word.
    close = get_close_matches(str(word)[:100], allowed, n=1)
    meant = f"did you mean `{close[0]}`? " if close else ""
    return f"{meant}allowed here: {', '.join(sorted(allowed))}"


def _has_wrong_items(short: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Tell whether a list is only too short because pydantic does not count its wrong items."""
    length = len(short["loc"])
    return any(d["loc"][:length] == short["loc"] and len(d["loc"]) > length for d in details)


def _keys_at(model: type[BaseModel], path: Path) -> list[str]:
    """Return the keys that a model accepts at a path, as they are written in files."""
    current: type[BaseModel] | None = model
    for part in path:
        if current is None:
            return []
        if isinstance(part, str):
            field = next(
                (f for n, f in current.model_fields.items() if (f.alias or n) == part), None
            )
            # Not a field: the key of a mapping such as `targets`, whose model is already current.
            current = _model_in(field.annotation) if field else current
    return [field.alias or name for name, field in current.model_fields.items()] if current else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside an annotation such as `tuple[Dataset, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model_in(inner))), None)
