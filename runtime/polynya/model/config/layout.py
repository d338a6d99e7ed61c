"""The layout of a table as written in a task: partitions, sort order, file size."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Column, Duration, Frozen, Parsed, format_duration
from polynya.model.names import column_problem, shown
from polynya.model.types import DataType, Decimal, Primitive

TransformName: TypeAlias = Literal["identity", "bucket", "truncate", "year", "month", "day", "hour"]
TRANSFORMS: Final[tuple[TransformName, ...]] = get_args(TransformName)
#: Transforms that take a number before the column, with the largest that makes sense.
WIDTHS: Final = {"bucket": 10_000, "truncate": 10_000}
#: Transforms by time; a finer one of the same column says all that a coarser one does.
TIMES: Final[tuple[TransformName, ...]] = ("year", "month", "day", "hour")
#: Names that other tools have for them.
_ALSO: Final = {
    "years": "year", "months": "month", "days": "day", "date": "day", "hours": "hour",
    "date_hour": "hour", "hash": "bucket", "mod": "bucket", "trunc": "truncate",
}  # fmt: skip

_INTEGERS: Final = frozenset({"int", "bigint"})
_INSTANTS: Final = frozenset({"timestamp", "timestamp_ntz"})
_DAYS: Final = frozenset({"date", *_INSTANTS})
_TEXTS: Final = frozenset({"string", "binary"})
_ALLOWED: Final[dict[TransformName, frozenset[str]]] = {
    "identity": frozenset({"boolean"}) | _INTEGERS | _DAYS | _TEXTS,
    "bucket": _INTEGERS | _DAYS | _TEXTS,
    "truncate": _INTEGERS | _TEXTS,
    "year": _DAYS,
    "month": _DAYS,
    "day": _DAYS,
    "hour": _INSTANTS,
}
_CALL: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
_DIRECTION: Final = re.compile(r"(.*\S)\s+(asc|desc)\s*", re.DOTALL | re.IGNORECASE)
_LONGEST: Final = 400


@dataclass(frozen=True, slots=True)
class PartitionTerm:
    """A column, and the transform of it whose values part the files. `width` is that of two."""

    transform: TransformName
    column: str
    width: int | None = None

    def __str__(self) -> str:
        column = _written(self.column)
        if self.transform == "identity":
            return column
        return f"{self.transform}({column if self.width is None else f'{self.width}, {column}'})"

    @property
    def iceberg(self) -> str:
        """The transform as Iceberg's specification writes it."""
        return self.transform if self.width is None else f"{self.transform}[{self.width}]"

    def refusal(self, kind: DataType) -> str | None:
        """Why a column of this type cannot be partitioned like this, None if it can."""
        allowed = _ALLOWED[self.transform]
        if isinstance(kind, Primitive) and kind.name in allowed:
            return None
        if isinstance(kind, Decimal) and self.transform in {"identity", "bucket", "truncate"}:
            return None
        if kind in {Primitive("float"), Primitive("double")} and self.transform == "identity":
            return f"values of {kind} are never exactly equal, so they make no partitions"
        names = sorted(allowed | ({"decimal"} if "int" in allowed else set()))
        return f"`{self.transform}` is for {', '.join(names)}, not for {kind}"


@dataclass(frozen=True, slots=True)
class SortTerm:
    """A column by which rows are sorted, or several whose bits are woven: a Z-order."""

    columns: tuple[str, ...]
    order: Literal["asc", "desc", "zorder"] = "asc"

    def __str__(self) -> str:
        names = ", ".join(map(_written, self.columns))
        if self.order == "zorder":
            return f"zorder({names})"
        return names if self.order == "asc" else f"{names} desc"

    def refusal(self, kind: DataType) -> str | None:
        """Why rows cannot be sorted by a column of this type, None when they can."""
        if isinstance(kind, Primitive | Decimal):
            return None
        return f"rows cannot be sorted by a column of {kind}"


def age_refusal(kind: DataType) -> str | None:
    """Why a column of this type says no age of a row, None when it does."""
    if isinstance(kind, Primitive) and kind.name in _DAYS:
        return None
    return f"the age of a row is a date or a timestamp, not {kind}"


def parse_partition(text: str) -> PartitionTerm:
    """Read one term of `partition_by`. Raises ValueError that says what is wrong with it."""
    call = _CALL.fullmatch(_short(text))
    if call is None:
        return PartitionTerm("identity", _column(text))
    name, inside = call[1].lower(), call[2]
    if name not in TRANSFORMS:
        raise ValueError(_unknown(call[1], inside))
    transform = next(one for one in TRANSFORMS if one == name)
    if transform not in WIDTHS:
        return PartitionTerm(transform, _column(inside))
    number, comma, column = inside.partition(",")
    if not comma or not re.fullmatch(r"\s*[0-9]{1,9}\s*", number):
        raise ValueError(f"write `{transform}(N, column)`, with a whole number N")
    if not 1 <= int(number) <= WIDTHS[transform]:
        raise ValueError(f"the number in `{transform}` is from 1 to {WIDTHS[transform]:,}")
    return PartitionTerm(transform, _column(column), int(number))


def parse_sort(text: str) -> SortTerm:
    """Read one term of `sort_by`. Raises ValueError that says what is wrong with it."""
    call = _CALL.fullmatch(_short(text))
    if call is not None:
        if call[1].lower() != "zorder":
            raise ValueError(f"{shown(text)} is not a column; only `zorder(a, b)` has brackets")
        columns = tuple(_column(one) for one in _listed(call[2]))
        if not 2 <= len(columns) <= 4 or len(set(columns)) < len(columns):
            raise ValueError("`zorder` takes two to four columns, each once")
        return SortTerm(columns, "zorder")
    direction = _DIRECTION.fullmatch(text)
    if direction is None:
        return SortTerm((_column(text),))
    order: Literal["asc", "desc"] = "desc" if direction[2].lower() == "desc" else "asc"
    return SortTerm((_column(direction[1]),), order)


def _short(text: str) -> str:
    if len(text) > _LONGEST:
        raise ValueError(f"{shown(text)} is longer than {_LONGEST} characters")
    return text


def _unknown(name: str, inside: str) -> str:
    near = get_close_matches(name.lower(), TRANSFORMS, n=1)
    meant = _ALSO.get(name.lower()) or (near[0] if near else None)
    if meant is None:
        return f"{shown(name)} is not a transform; there are {', '.join(TRANSFORMS)}"
    written = f"{meant}({inside.strip()[:60]})"
    return f"{shown(name)} is not a transform; did you mean {shown(written, limit=80)}?"


def _listed(text: str) -> list[str]:
    """Parts between commas; in back-quotes a comma is part of a name."""
    return re.findall(r"(?:`(?:[^`]|``)*`|[^,`])+", text)


def _column(text: str) -> str:
    name = text.strip()
    if len(name) >= 2 and name[0] == name[-1] == "`":
        name = name[1:-1].replace("``", "`")
    elif "," in name or "(" in name or ")" in name:
        raise ValueError(f"{shown(text)} is not a column; put an unusual name in back-quotes")
    if problem := column_problem(name):
        raise ValueError(problem)
    return name


def _written(name: str) -> str:
    """A name that reads back as this column."""
    if re.fullmatch(r"[^\s,()`]+", name):
        return name
    return "`" + name.replace("`", "``") + "`"


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
    Parsed(_read(PartitionTerm, parse_partition, "day(created_at)")),
    _schema("country", "day(created_at)", "bucket(16, id)", "truncate(4, code)"),
]
SortBy: TypeAlias = Annotated[
    SortTerm,
    Parsed(_read(SortTerm, parse_sort, "created_at desc")),
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
