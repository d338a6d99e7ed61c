"""Forms from pydantic models: one field of a page for each field of the model."""

from __future__ import annotations

import json
import re
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

from polynya.model.documents.yaml import ListNode, MapNode, Node, read_document
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
    #: Items that are YAML, one on each line.
    ITEMS = "items"
    #: `name: value` lines of YAML, or items one on each line.
    YAML = "yaml"


Model = TypeVar("Model", bound=BaseModel)

#: Fields of a form, and parameters of an address, at most.
MOST_FIELDS: Final = 1100
#: Texts that YAML reads as themselves without quotes, but for its words.
_PLAIN: Final = re.compile(r"[A-Za-z_][\w.]*( [\w.]+)*", re.ASCII)
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


@dataclass(frozen=True, slots=True)
class FormField:
    """One field: `values` are the texts that it shows first, of which most kinds have one."""

    name: str
    title: str
    kind: FieldKind
    required: bool
    choices: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    hint: str = ""


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


def last(form: Mapping[str, Sequence[str]], name: str) -> str:
    """The last text that a form sends in a field; empty without one."""
    return form.get(name, ("",))[-1]


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
        yield FormField(
            name, title, kind, info.is_required(), choices, tuple(values), info.description or ""
        )


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
        elif kind is FieldKind.ITEMS:
            made[name] = [yaml_value(line) for line in texts[-1].splitlines() if line.strip()]
        elif kind is FieldKind.YAML:
            made[name] = yaml_setting(texts[-1])
        elif kind is FieldKind.CHOICES:
            made[name] = texts
        else:
            made[name] = texts[-1]
    unknown = {name: texts for name, texts in given.items() if name not in _names(model)}
    # The model refuses what it does not know, as it does in a request of the API.
    return made | unknown


def texts_of(model: type[BaseModel], settings: Mapping[str, Any]) -> dict[str, list[str]]:
    """What a form shows of settings that a file has."""
    made: dict[str, list[str]] = {}
    for attribute, info in model.model_fields.items():
        name = info.alias or attribute
        value = settings.get(name)
        kind, _ = _kind(_type(info))
        if value is None:
            continue
        if kind in {FieldKind.ITEMS, FieldKind.YAML}:
            made[name] = [yaml_lines(value)]
        else:
            made[name] = list(_texts(value))
    return made


def yaml_value(text: str) -> Any:
    """A text of YAML as values. Raises ConfigError as `read_document`."""
    root, errors = read_document(text, "form")
    if errors:
        raise errors[0]
    return plain(root)


def yaml_setting(text: str) -> Any:
    """A setting as a form has it: items one on each line, or a mapping of YAML."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if all(":" not in line and line[0] not in "[{" for line in lines):
        return [yaml_value(line.removeprefix("- ")) for line in lines]
    return yaml_value(text)


def yaml_lines(value: Any) -> str:
    """A list or a mapping with one item on each line."""
    if isinstance(value, Mapping):
        return "\n".join(f"{yaml_text(str(key))}: {yaml_text(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(map(yaml_text, value))
    return yaml_text(value)


def yaml_text(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) is not None and value.lower() not in _WORDS
        return value if is_plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        pairs = (f"{yaml_text(str(key))}: {yaml_text(one)}" for key, one in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(yaml_text, value))}]"
    return json.dumps(value)


def plain(node: Node) -> Any:
    """A node of a document as values."""
    if isinstance(node, MapNode):
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return node.value


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
        several = [one for one in get_args(found) if one is not types.NoneType]
        return _bare(several[0]) if len(several) == 1 or not _is_nested(several) else found
    return found


def _is_nested(several: Sequence[Any]) -> bool:
    """Whether one of some types is a mapping, or has items."""
    return any(get_origin(_bare(one)) in {dict, tuple} for one in several)


def _kind(found: Any) -> tuple[FieldKind, tuple[str, ...]]:
    if get_origin(found) is Literal:
        return FieldKind.CHOICE, tuple(str(one) for one in get_args(found))
    if get_origin(found) in {list, tuple}:
        item, *_ = get_args(found)
        if get_origin(_bare(item)) in {Union, types.UnionType}:
            return FieldKind.ITEMS, ()
        kind, choices = _kind(_bare(item))
        return (FieldKind.CHOICES, choices) if kind is FieldKind.CHOICE else (FieldKind.LINES, ())
    is_model = isinstance(found, type) and issubclass(found, BaseModel)
    if get_origin(found) in {dict, Union, types.UnionType} or is_model:
        return FieldKind.YAML, ()
    if found is bool:
        return FieldKind.FLAG, ()
    if isinstance(found, type) and issubclass(found, int | float):
        return FieldKind.NUMBER, ()
    if isinstance(found, type) and issubclass(found, StrEnum):
        return FieldKind.CHOICE, tuple(str(one) for one in found)
    assert found in {str, datetime}, found
    return FieldKind.TEXT, ()
