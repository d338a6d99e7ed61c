"""From what is wrong with a document to ConfigErrors with a place, a path and a way out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from polynya.model.contract.identifiers import shown
from polynya.model.documents.nodes import Node, Path, dotted, place_of
from polynya.model.errors import ConfigError

_CODES: Final = {
    "extra_forbidden": "POLYNYA-CFG-007",
    "missing": "POLYNYA-CFG-008",
    "polynya_name": "POLYNYA-CFG-010",
    "polynya_path": "POLYNYA-CFG-011",
    "polynya_type": "POLYNYA-CFG-020",
}
_OTHER_CODE: Final = "POLYNYA-CFG-009"
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


def shape_problems(error: ValidationError, model: type[BaseModel]) -> Iterator[Problem]:
    """Yield what pydantic found wrong with a document of the given model."""
    details = error.errors(include_url=False)
    for detail in details:
        if detail["type"] == "too_short" and _has_wrong_items(detail, details):
            continue
        # pydantic marks a bad key of a mapping with a last part "[key]".
        path = tuple(part for part in detail["loc"] if part != "[key]")
        code = _CODES.get(detail["type"], _OTHER_CODE)
        if detail["type"] == "extra_forbidden":
            allowed = _keys_at(model, path[:-1])
            yield Problem(
                path, code, f"unknown key {shown(str(path[-1]))}", suggest(path[-1], allowed)
            )
        elif detail["type"] == "missing":
            yield Problem(path[:-1], code, f"missing key {shown(str(path[-1]))}")
        else:
            yield Problem(path, code, _message(detail), _literal_fix(detail))


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


def _message(detail: ErrorDetails) -> str:
    message = detail["msg"]
    # Files have lists; that the models hold tuples is nobody's concern.
    return (message[:1].lower() + message[1:]).replace("tuple", "list")


def _literal_fix(detail: ErrorDetails) -> str | None:
    if detail["type"] not in {"literal_error", "enum"}:
        return None
    return suggest(detail["input"], _QUOTED.findall(str(detail.get("ctx", {}).get("expected", ""))))


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
