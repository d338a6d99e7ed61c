"""The kinds of field that only `content:` of a stream has, each with its check."""

from __future__ import annotations

import json
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from polynya.model.config.streaming.patterns import group_pattern, split_pattern

_MAX_SCHEMA: Final = 1_000_000


def refuse(message: str, fix: str | None = None) -> PydanticCustomError:
    """The error of a value that is not right, as pydantic takes it."""
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


def _avro_schema(value: object) -> object:
    """The text of an Avro schema, which may be written as YAML."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not isinstance(value, str):
        raise refuse("an Avro schema is expected here", "write it as JSON text or as YAML")
    try:
        json.loads(value)
    except ValueError as error:
        raise refuse(f"the Avro schema is not JSON: {error}") from None
    return value


def _pattern(text: str) -> str:
    try:
        group_pattern(text)
    except ValueError as error:
        raise refuse(str(error)) from None
    return text


def _split(text: str) -> str:
    try:
        split_pattern(text)
    except ValueError as error:
        raise refuse(str(error)) from None
    return text


AvroSchema: TypeAlias = Annotated[
    str,
    BeforeValidator(_avro_schema),
    Field(max_length=_MAX_SCHEMA),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
]
GroupPattern: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=4000), AfterValidator(_pattern)
]
SplitPattern: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=4000), AfterValidator(_split)
]
Part: TypeAlias = Annotated[str, Field(min_length=1, max_length=300)]
