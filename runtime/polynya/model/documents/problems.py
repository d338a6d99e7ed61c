"""Problems in documents, which become ConfigErrors with a place, a path and a fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from polynya.model.documents.yaml import Node, NodePath, Plain, dotted, position_of
from polynya.model.error_catalogue.configuration import (
    INVALID_LAYOUT_TERM,
    INVALID_TYPE,
    MISSING_KEY,
    PATH_LEAVES_FOLDER,
    UNKNOWN_KEY,
    UNPROTECTED_LOGIN,
    UNUSABLE_NAME,
    WRONG_VALUE,
)
from polynya.model.error_catalogue.flows import INCREMENTAL_FILTER_REFUSED
from polynya.model.errors import ConfigError, PolynyaError
from polynya.model.names import shown


@dataclass(frozen=True, slots=True)
class Problem:
    """An error at a path of a document; `located` adds the file, line and column."""

    path: NodePath
    error: PolynyaError


def located(problems: Iterable[Problem], root: Node, file: str) -> list[ConfigError]:
    """Turn problems into errors that say `file:line:col` and the key path.

    They have no state: a check only reads.
    """
    errors = []
    pairs = [(position_of(root, problem.path), problem) for problem in problems]
    for position, problem in sorted(pairs, key=lambda pair: (pair[0].line, pair[0].column)):
        path, error = dotted(problem.path), problem.error
        errors.append(
            ConfigError(
                error.code,
                f"{path}: {error.message}" if path else error.message,
                where=f"{file}:{position.line}:{position.column}",
                fix=error.fix,
                why=error.why,
            )
        )
    return errors


#: Errors about a key and not about its value; one place may have several.
_KEYS: Final = frozenset({"extra_forbidden", "missing"})


def shape_problems(
    error: ValidationError, model: type[BaseModel], value: Plain
) -> Iterator[Problem]:
    """Yield what the validation of a document by the given model reports, once for each place."""
    reported: set[tuple[NodePath, str]] = set()
    split = _split_types(value)
    details = error.errors(include_url=False)
    for detail in details:
        if detail["type"] == "too_short" and _has_wrong_items(detail, details):
            continue
        path = _written(value, detail["loc"])
        if path in split:
            if not split[path]:
                continue
            message = "a type with a comma needs quotes inside { }"
            fix = f'quote it: `{path[-1]}: "{split[path]}"`'
            problem = Problem(path, INVALID_TYPE(message, fix=fix))
        else:
            problem = _problem(detail, model, value, path)
        # A value that may have several types has one problem, not one for each of them.
        key = (path, problem.error.message if detail["type"] in _KEYS else "")
        if key not in reported:
            reported.add(key)
            yield problem


def _written(value: Plain, place: Sequence[int | str]) -> NodePath:
    """The part of pydantic's location that is in the document; the rest names union members."""
    path: list[str | int] = []
    for index, part in enumerate(place):
        if isinstance(value, dict) and part in value:
            value = value[str(part)]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        elif isinstance(value, dict | list) and isinstance(part, str) and index + 1 < len(place):
            # The model that a value has by its `mode` or its shape; its contents follow.
            continue
        else:
            break
        path.append(part)
    return tuple(path)


#: Entries of the errors of our own checks; all others are `WRONG_VALUE`.
_ENTRIES: Final = {
    "polynya_name": UNUSABLE_NAME,
    "polynya_path": PATH_LEAVES_FOLDER,
    "polynya_type": INVALID_TYPE,
    "polynya_layout": INVALID_LAYOUT_TERM,
    "polynya_unsecured": UNPROTECTED_LOGIN,
    "polynya_incremental_filter": INCREMENTAL_FILTER_REFUSED,
}


_QUOTED: Final = re.compile(r"'([^']*)'")


def _problem(detail: ErrorDetails, model: type[BaseModel], value: Plain, path: NodePath) -> Problem:
    kind = detail["type"]
    if kind == "extra_forbidden":
        fix = suggest(path[-1], _keys_at(model, detail["loc"][:-1]))
        return Problem(path, UNKNOWN_KEY(fix=fix, key=shown(str(path[-1]))))
    if kind == "missing":
        fix = f"add it. {_meaning(model, detail['loc'])}"
        return Problem(path, MISSING_KEY(fix=fix, key=shown(str(detail["loc"][-1]))))
    choices = _QUOTED.findall(str(detail.get("ctx", {}).get("expected", "")))
    written = _value_at(value, path)
    if kind.startswith("union_tag"):
        return _unknown_kind(detail, model, path, written)
    entry = _ENTRIES.get(kind, WRONG_VALUE)
    if choices:
        message, _ = _wording("literal_error", written, {})
        return Problem(path, entry(message, fix=suggest(written, choices)))
    message, fix = _wording(kind, written, detail.get("ctx", {}))
    keys = _keys_at(model, path) if kind.startswith("model") else []
    if keys:
        fix = suggest(written, keys)
    return Problem(path, entry(message, fix=fix or _meaning(model, path)))


def _unknown_kind(
    detail: ErrorDetails, model: type[BaseModel], path: NodePath, written: Plain
) -> Problem:
    """A mapping whose kind is missing or unknown."""
    context = detail.get("ctx", {})
    key = str(context.get("discriminator", "")).strip("'")
    choices = _QUOTED.findall(str(context.get("expected_tags", "")))
    if isinstance(written, dict) and key in written:
        message, fix = _wording("literal_error", written[key], {})
        fix = suggest(written[key], choices) or fix
        return Problem((*path, key), WRONG_VALUE(message, fix=fix))
    fix = f"add it. {_meaning(model, path)}"
    return Problem(path, MISSING_KEY(fix=fix, key=shown(key)))


def _value_at(value: Plain, path: NodePath) -> Plain:
    for part in path:
        value = value[part]  # type: ignore[index]
    return value


def _has_wrong_items(short: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Tell whether a list is only too short because pydantic does not count its wrong items."""
    length = len(short["loc"])
    return any(d["loc"][:length] == short["loc"] and len(d["loc"]) > length for d in details)


#: What is expected, and a fix, by the first word of pydantic's error type.
_EXPECTED: Final[Mapping[str, tuple[str, str]]] = {
    "string": ("text", "write one text"),
    "int": ("a whole number", "write a whole number, such as `1000`"),
    "float": ("a number", "write a number, such as `0.5`"),
    "bool": ("true or false", "write `true` or `false`"),
    "tuple": ("a list", "write a list, such as `[a, b]`"),
    "list": ("a list", "write a list, such as `[a, b]`"),
    "dict": ("a mapping of keys to values", "write `key: value` lines below it"),
    "model": ("a mapping of keys to values", "write `key: value` lines below it"),
    "dataclass": ("a mapping of keys to values", "write `key: value` lines below it"),
}


#: Fixes of our own checks that bring none.
_FIXES: Final[Mapping[str, str]] = {
    "polynya_name": "choose another name",
    "polynya_path": "write a path below the folder, such as `orders/2026`",
}


_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def _wording(kind: str, value: Plain, context: Mapping[str, Any]) -> tuple[str, str | None]:
    """Message and fix for one of pydantic's error types; the fix is None if it does not imply one.

    `context` is pydantic's: limits, and message and fix of our own checks.
    """
    if "message" in context:
        return str(context["message"]), context.get("fix") or _FIXES.get(kind)
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        limit = context[name]
        limit = int(limit) if limit == int(limit) else limit
        return f"{shown(str(value))} is out of range", f"write a number that is {words} {limit}"
    if kind in {"literal_error", "enum"}:
        return f"{_described(value)} is not one of the possible values", None
    if kind in {"too_short", "string_too_short"}:
        return "it is empty", "write a value, or remove the key"
    if kind in {"too_long", "string_too_long"}:
        unit = "characters" if kind.startswith("string") else "entries"
        return "it is too long", f"write at most {context.get('max_length')} {unit}"
    if kind == "string_pattern_mismatch":
        return f"{_described(value)} does not have the right form", None
    expected = _EXPECTED.get(kind.partition("_")[0])
    if expected is None:
        return f"{_described(value)} cannot be used here", None
    what, fix = expected
    return f"{what} is expected here, not {_described(value)}", _quoted(what, value) or fix


def _described(value: Plain) -> str:
    """A value with its type, as a message names it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"`{str(value).lower()}`"
        case int() | float():
            return f"the number {shown(str(value))}"
        case str():
            return f"the text {shown(value)}" if value else "an empty text"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _quoted(what: str, value: Plain) -> str | None:
    """The fix for a value that only needs quotes or brackets."""
    if what == "text" and isinstance(value, bool | int | float):
        return f'write it in quotes: "{str(value).lower()[:60]}"'
    if what == "a list" and isinstance(value, str) and value:
        return f"write it as a list: `[{shown(value)[1:-1]}]`"
    return None


def suggest(word: object, allowed: Sequence[str]) -> str | None:
    """Return "did you mean …? allowed here: …" for a word that is not allowed."""
    if not allowed:
        return None
    # difflib is quadratic in the length of the word.
    close = get_close_matches(str(word)[:100], allowed, n=1)
    meant = f"did you mean `{close[0]}`? " if close else ""
    return f"{meant}allowed here: {', '.join(sorted(allowed))}"


def _keys_at(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """Return the keys that a model accepts at a place, as they are written in files."""
    models = [model]
    for part in place:
        if isinstance(part, str):
            models, _ = _below(models, part)
    fields = models[0].model_fields if models else {}
    return list(dict.fromkeys(field.alias or name for name, field in fields.items()))


def _meaning(model: type[BaseModel], path: NodePath) -> str:
    """What a setting is for, as the reference says it."""
    keys = [part for part in path if isinstance(part, str)]
    for end in range(len(keys), 0, -1):
        field = _field_at(model, keys[:end])
        if field is not None and field.description:
            return f"`{keys[end - 1]}`: {field.description.rstrip('.')}"
    return "see the reference of project and task files"


def _field_at(model: type[BaseModel], keys: Sequence[str]) -> FieldInfo | None:
    """The field that a path of keys ends at; None for the key of a mapping."""
    models, field = [model], None
    for key in keys:
        models, field = _below(models, key)
    return field


def _below(
    models: Sequence[type[BaseModel]], key: str
) -> tuple[list[type[BaseModel]], FieldInfo | None]:
    """The models that the value of a key may have, and the field of that key."""
    for model in models:
        for name, field in model.model_fields.items():
            if (field.alias or name) == key:
                return _models_in(field.annotation), field
    # Not a field: the key of a mapping such as `targets`, or the tag of a union's member.
    return [model for model in models if _is_kind(model, key)] or list(models), None


def _is_kind(model: type[BaseModel], kind: str) -> bool:
    """Whether a model is the one of a `mode`, where the value of that key chooses the model."""
    field = model.model_fields.get("mode")
    return field is not None and kind in get_args(field.annotation)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models inside an annotation such as `tuple[Dataset, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models_in(inner)]


_OPENING = {"(": 1, "<": 1, ")": -1, ">": -1}


def _split_types(value: Plain) -> dict[NodePath, str]:
    """Types that YAML split at a comma: path of a setting `columns.NAME` → the whole type.

    The paths of the other pieces are there too, with an empty text.
    """
    types: dict[NodePath, str] = {}

    def look(value: Plain, path: NodePath) -> None:
        if isinstance(value, dict):
            if path and path[-1] == "columns":
                _rejoin(value, path, types)
            for key, inner in value.items():
                look(inner, (*path, key))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                look(inner, (*path, index))

    look(value, ())
    return types


def _rejoin(columns: Mapping[str, Plain], path: NodePath, types: dict[NodePath, str]) -> None:
    entries = list(columns.items())
    while entries:
        name, text = entries.pop(0)
        if not isinstance(text, str) or _open(text) <= 0:
            continue
        pieces = []
        while entries and entries[0][1] is None and _open(text) > 0:
            piece, _ = entries.pop(0)
            pieces.append(piece)
            text += f",{piece}"
        if pieces and _open(text) == 0:
            types[*path, name] = text
            types |= {(*path, piece): "" for piece in pieces}


def _open(text: str) -> int:
    """The number of brackets that are open at the end of a text."""
    return sum(_OPENING.get(character, 0) for character in text)
