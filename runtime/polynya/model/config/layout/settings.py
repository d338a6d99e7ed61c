"""The settings of a layout as they stand in a task: kinds of field, each with its check."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from polynya.model.config.durations import format_duration
from polynya.model.config.fields import Column, Duration, Frozen
from polynya.model.config.layout.terms import (
    PartitionTerm,
    SortTerm,
    parse_partition,
    parse_sort,
)


def _read(kind: type, parse: Callable[[str], object], example: str) -> Callable[[object], object]:
    def read(value: object) -> object:
        if isinstance(value, kind):
            return value
        try:
            if isinstance(value, str):
                return parse(value)
            message = f"a text such as `{example}` is expected here"
        except ValueError as error:
            message = str(error)
        raise PydanticCustomError("polynya_layout", "{message}", {"message": message, "fix": None})

    return read


def _schema(*examples: str) -> WithJsonSchema:
    return WithJsonSchema(
        {"type": "string", "minLength": 1, "maxLength": 400, "examples": list(examples)}
    )


PartitionBy: TypeAlias = Annotated[
    PartitionTerm,
    BeforeValidator(_read(PartitionTerm, parse_partition, "day(created_at)")),
    PlainSerializer(str),
    _schema("country", "day(created_at)", "bucket(16, id)", "truncate(4, code)"),
]
SortBy: TypeAlias = Annotated[
    SortTerm,
    BeforeValidator(_read(SortTerm, parse_sort, "created_at desc")),
    PlainSerializer(str),
    _schema("created_at", "created_at desc", "zorder(latitude, longitude)"),
]


class RowRetention(Frozen):
    """Rows of a certain age leave the table."""

    column: Column = Field(
        description="Column of type date or timestamp that gives the age of a row."
    )
    keep: Duration = Field(gt=timedelta(0), description="Rows with older values are removed.")

    def __str__(self) -> str:
        return f"{self.column} {format_duration(self.keep)}"
