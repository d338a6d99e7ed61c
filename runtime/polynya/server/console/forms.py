"""Forms from pydantic models: one field of a page for each field of the model."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, get_args, get_origin
from urllib.parse import parse_qs

from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from polynya.model.error_catalogue.server import REQUEST_INVALID
from polynya.model.names import shown


class FieldKind(StrEnum):
    """How a field is entered."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    CHOICE = "choice"
    CHOICES = "choices"
    LINES = "lines"


Model = TypeVar("Model", bound=BaseModel)

#: Fields of a form, and parameters of an address, at most.
MOST_FIELDS: Final = 1100


@dataclass(frozen=True, slots=True)
class FormField:
    """One field: `values` are the texts that it shows first, of which most kinds have one."""

    name: str
    title: str
    kind: FieldKind
    required: bool
    choices: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


def sent(body: bytes) -> dict[str, list[str]]:
    """What a form sends as the body of a request. Raises POLYNYA-SRV-002 for other bodies."""
    try:
        text = body.decode("utf-8")
        return parse_qs(
            text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=MOST_FIELDS
        )
    except ValueError as error:
        raise REQUEST_INVALID(reason="the body is no form") from error


async def _posted(request: Request) -> dict[str, list[str]]:
    return sent(await request.body())


#: What a form sends, for routes that run in a thread.
Posted: TypeAlias = Annotated[dict[str, list[str]], Depends(_posted)]


def fields(model: type[BaseModel], given: Mapping[str, Sequence[str]]) -> list[FormField]:
    """The fields of a model, filled with what is given, and else with their defaults."""
    return list(_fields(model, given))


def _fields(model: type[BaseModel], given: Mapping[str, Sequence[str]]) -> Iterator[FormField]:
    for attribute, info in model.model_fields.items():
        name = info.alias or attribute
        kind, choices = _kind(_type(info))
        values = given.get(name)
        if values is None:
            default = None if info.is_required() else info.get_default(call_default_factory=True)
            values = _texts(default)
        title = name.replace("_", " ").capitalize()
        yield FormField(name, title, kind, info.is_required(), choices, tuple(values))


def read(model: type[Model], given: Mapping[str, Sequence[str]]) -> Model:
    """The model of what a form sends. Raises POLYNYA-SRV-002 with the field that is wrong."""
    try:
        return model.model_validate(values(model, given))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise REQUEST_INVALID(reason=f"{shown(place)}: {first['msg']}") from error


def values(model: type[BaseModel], given: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What a form sends, as the model takes it: fields that were left empty are left out."""
    made: dict[str, Any] = {}
    for attribute, info in model.model_fields.items():
        name = info.alias or attribute
        kind, _ = _kind(_type(info))
        texts = [text for text in given.get(name, ()) if text]
        if not texts:
            continue
        if kind is FieldKind.LINES:
            lines = (line.strip() for text in texts for line in text.splitlines())
            made[name] = [line for line in lines if line]
        elif kind is FieldKind.CHOICES:
            made[name] = texts
        else:
            made[name] = texts[-1]
    unknown = {name: texts for name, texts in given.items() if name not in _names(model)}
    # The model refuses what it does not know, as it does in a request of the API.
    return made | unknown


def _names(model: type[BaseModel]) -> set[str]:
    return {info.alias or attribute for attribute, info in model.model_fields.items()}


def _texts(value: Any) -> tuple[str, ...]:
    if value is None or value is False:
        return ()
    if isinstance(value, list | tuple):
        return tuple(str(one) for one in value)
    return ("true",) if value is True else (str(value),)


def _type(info: FieldInfo) -> Any:
    """The type of a field without its annotations, and without the None that it may be."""
    return _bare(info.annotation)


def _bare(found: Any) -> Any:
    if get_origin(found) is Annotated:
        return _bare(get_args(found)[0])
    if get_origin(found) in {Union, types.UnionType}:
        (only, *_) = (one for one in get_args(found) if one is not types.NoneType)
        return _bare(only)
    return found


def _kind(found: Any) -> tuple[FieldKind, tuple[str, ...]]:
    if get_origin(found) is Literal:
        return FieldKind.CHOICE, tuple(str(one) for one in get_args(found))
    if get_origin(found) is list:
        (item,) = get_args(found)
        kind, choices = _kind(_bare(item))
        return (FieldKind.CHOICES, choices) if kind is FieldKind.CHOICE else (FieldKind.LINES, ())
    if found is bool:
        return FieldKind.FLAG, ()
    if isinstance(found, type) and issubclass(found, int | float):
        return FieldKind.NUMBER, ()
    if isinstance(found, type) and issubclass(found, StrEnum):
        return FieldKind.CHOICE, tuple(str(one) for one in found)
    assert found in {str, datetime}, found
    return FieldKind.TEXT, ()
