"""The kinds of field in configuration models, with durations and sizes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from polynya.model.headers import STREAM_HEADER_NAMES
from polynya.model.names import column_problem, is_name, relative_path_problem, shown
from polynya.model.patterns import name_time_pattern
from polynya.model.time_patterns import EPOCHS, time_pattern
from polynya.model.types import (
    DATA_TYPES,
    DOUBLE,
    DataType,
    Decimal,
    TypeSyntaxError,
    Void,
    parse_type,
    type_advice,
)

_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
# As Spark reads "64MB": every step is 1024.
_SIZES: Final = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
DURATION_PATTERN: Final = r"^[0-9]{1,13} ?(ms|s|m|h|d|w)$"
SIZE_PATTERN: Final = r"^[0-9]{1,15} ?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?$"
MAX_DURATION: Final = timedelta(days=100 * 365)


def parse_duration(text: str) -> timedelta:
    """Return the duration that a text such as `15m` spells; raises ValueError."""
    match = re.fullmatch(DURATION_PATTERN, text)
    if match is None:
        raise ValueError(f"`{text[:40]}` is not a duration; write a number and ms, s, m, h, d or w")
    unit = _UNITS[match[1]]
    count = int(text[: match.start(1)])
    # Compared as a count: the product of a large number and a week does not fit a timedelta.
    if count > MAX_DURATION // unit:
        raise ValueError(f"`{text[:40]}` is longer than 100 years")
    return count * unit


def format_duration(value: timedelta) -> str:
    """Return the shortest exact text of a duration: the largest unit that divides it."""
    for name in reversed(_UNITS):
        if value % _UNITS[name] == timedelta(0) and (value or name == "s"):
            return f"{value // _UNITS[name]}{name}"
    raise ValueError(f"{value} is finer than a millisecond")


def parse_size(text: str) -> int:
    """Return the number of bytes that a text such as `64MB` (64 x 1024 x 1024) spells."""
    match = re.fullmatch(SIZE_PATTERN, text)
    if match is None:
        raise ValueError(f"`{text[:40]}` is not a size; write a number and B, KB, MB, GB or TB")
    unit = (match[1] or "B").replace("i", "")
    return int(text[: match.start(1)] if match[1] else text) * _SIZES[unit]


def format_size(value: int) -> str:
    """Return the shortest exact text of a number of bytes."""
    for name in reversed(_SIZES):
        if value and value % _SIZES[name] == 0:
            return f"{value // _SIZES[name]}{name}"
    return f"{value}B"


_MAX_EXPRESSION: Final = 4000
#: What a cluster may be called.
CLUSTER_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"


@dataclass(frozen=True)
class Parsed:
    """Marks a value that `read` takes from a file, and that is written as its text.

    Start-up time: pydantic would describe the class of the value, once for each field that has it,
    to check what `read` has checked.
    """

    read: Callable[[object], object]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of a value that `read` returns as it is, or refuses."""
        return core_schema.no_info_plain_validator_function(
            self.read, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )


class Frozen(BaseModel):
    """Base of every configuration model: immutable, and an unknown key is an error."""

    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        use_attribute_docstrings=False,
    )


def _refuse(kind: str, message: str, fix: str | None = None) -> PydanticCustomError:
    """Make an error whose type the loader maps to a code (`documents/problems.py`)."""
    return PydanticCustomError(kind, "{message}", {"message": message, "fix": fix})


def _name(text: str) -> str:
    if not is_name(text):
        raise _refuse(
            "polynya_name",
            f"{shown(text)} is not usable as a name; use 1 to 128 of A-Z a-z 0-9 _, "
            "not starting with a digit",
        )
    return text


def _cluster_name(text: str) -> str:
    if not re.fullmatch(CLUSTER_NAME, text):
        raise _refuse(
            "polynya_name",
            f"{shown(text)} is not usable as a cluster name; use 1 to 128 of A-Z a-z 0-9 _ . -, "
            "a letter or a digit first",
        )
    return text


def _prefix(text: str) -> str:
    if text and not is_name(text):
        raise _refuse("polynya_name", f"{shown(text)} is not usable as a prefix of table names")
    return text


def _suffix(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_]{1,32}", text):
        raise _refuse("polynya_name", f"{shown(text)} is not usable as a suffix of view names")
    return text


def _column(text: str) -> str:
    if problem := column_problem(text):
        raise _refuse("polynya_name", problem)
    return text


def _source_column(text: str) -> str:
    return text if text in STREAM_HEADER_NAMES else _column(text)


def _path(text: str) -> str:
    if problem := relative_path_problem(text):
        raise _refuse("polynya_path", problem)
    return text


def _file_name(text: str) -> str:
    if "/" in text or relative_path_problem(text):
        raise _refuse("polynya_path", f"{shown(text)} is not the name of a file")
    return text


def _name_time(text: str) -> str:
    try:
        name_time_pattern(text)
    except ValueError as error:
        raise _refuse("polynya_value", str(error)) from None
    return text


def _type(value: object) -> object:
    if isinstance(value, dict):
        value = _decimal_text(value)
    if isinstance(value, DATA_TYPES):
        return value
    if not isinstance(value, str):
        raise _refuse("polynya_type", f"`{str(value)[:40]}` is not a type", type_advice(""))
    try:
        kind = parse_type(value)
    except TypeSyntaxError as error:
        word = re.match(r"\s*(\w+)", value[error.position :])
        advice = type_advice(word[1] if word else value)
        raise _refuse("polynya_type", str(error), advice) from None
    if _holds_void(kind):
        raise _refuse(
            "polynya_type",
            "`void`, and a struct without fields, cannot be declared",
            "leave the column out of `columns`",
        )
    return kind


def _decimal_text(value: dict[object, object]) -> str:
    """The text of a decimal that is written as a mapping."""
    precision, scale = value.get("precision"), value.get("scale", 0)
    plain = value.get("type") == "decimal" and set(value) <= {"type", "precision", "scale"}
    if not plain or not isinstance(precision, int) or not isinstance(scale, int):
        raise _refuse(
            "polynya_type",
            "this mapping is not a type",
            "write `{type: decimal, precision: 12, scale: 2}`, or a type as text in quotes",
        )
    return f"decimal({precision},{scale})"


def _time_format(text: str) -> str:
    if text not in EPOCHS:
        try:
            time_pattern(text)
        except ValueError as error:
            raise _refuse(
                "polynya_value",
                f"{shown(text)} is not a format of times: {error}",
                "write a pattern such as `dd.MM.yyyy HH:mm`, or "
                + " or ".join(f"`{name}`" for name in EPOCHS),
            ) from None
    return text


def number_type(value: object) -> object:
    """A type for all numbers, of what a file says; raises what pydantic takes as a refusal."""
    if value == "decimal":
        return MONEY
    kind = _type(value)
    if not (isinstance(kind, Decimal) or kind == DOUBLE):
        raise _refuse(
            "polynya_type",
            "this is not a type for all numbers",
            'write `decimal`, `"decimal(18,4)"` or `double`',
        )
    return kind


def _holds_void(kind: DataType) -> bool:
    text = str(kind)
    return isinstance(kind, Void) or "struct<>" in text or "void" in re.split(r"[<>,:]", text)


def _parsed(parse: Callable[[str], object]) -> Callable[[object], object]:
    """Let text through `parse`; other values go on to pydantic's own check."""

    def convert(value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return parse(value)
        except ValueError as error:
            raise _refuse("polynya_value", str(error)) from None

    return convert


def _duration(value: object) -> object:
    # A bare number would be seconds to pydantic and anything to a reader.
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise _refuse("polynya_value", f"`{value}` has no unit", f"write for example `{value}s`")
    if not isinstance(value, str | timedelta):
        raise _refuse("polynya_value", "a duration is expected here", "write for example `15m`")
    return _parsed(parse_duration)(value)


def _retention(value: object) -> object:
    return value if value == "keep" else _duration(value)


def _retention_text(value: timedelta | str) -> str:
    return value if isinstance(value, str) else format_duration(value)


def _text_schema(**extra: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", **extra})


Name: TypeAlias = Annotated[
    str, AfterValidator(_name), _text_schema(pattern="^[A-Za-z_][A-Za-z0-9_]{0,127}$")
]
ClusterName: TypeAlias = Annotated[
    str, AfterValidator(_cluster_name), _text_schema(pattern=f"^{CLUSTER_NAME}$")
]
Prefix: TypeAlias = Annotated[
    str, AfterValidator(_prefix), _text_schema(pattern="^([A-Za-z_][A-Za-z0-9_]{0,127})?$")
]
Suffix: TypeAlias = Annotated[
    str, AfterValidator(_suffix), _text_schema(pattern="^[A-Za-z0-9_]{1,32}$")
]
Column: TypeAlias = Annotated[
    str, AfterValidator(_column), _text_schema(minLength=1, maxLength=255)
]
#: A column of the source, which may be a header column of a stream.
SourceColumn: TypeAlias = Annotated[
    str, AfterValidator(_source_column), _text_schema(minLength=1, maxLength=255)
]
RelativePath: TypeAlias = Annotated[
    str, AfterValidator(_path), _text_schema(minLength=1, maxLength=1024)
]
FileName: TypeAlias = Annotated[
    str, AfterValidator(_file_name), _text_schema(minLength=1, maxLength=255)
]
NameTime: TypeAlias = Annotated[
    str, AfterValidator(_name_time), _text_schema(maxLength=255, examples=["%Y-%m-%d"])
]
Expression: TypeAlias = Annotated[str, Field(min_length=1, max_length=_MAX_EXPRESSION)]
Pattern: TypeAlias = Annotated[str, Field(min_length=1, max_length=300)]
ColumnType: TypeAlias = Annotated[
    DataType,
    Parsed(_type),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {
                        "type": {"const": "decimal"},
                        "precision": {"type": "integer", "minimum": 1, "maximum": 38},
                        "scale": {"type": "integer", "minimum": 0, "maximum": 38},
                    },
                    "required": ["type", "precision"],
                    "additionalProperties": False,
                },
            ],
            "examples": ["bigint", "decimal(18,2)", "array<string>"],
        }
    ),
]
TimeFormatText: TypeAlias = Annotated[
    str,
    AfterValidator(_time_format),
    _text_schema(maxLength=100, examples=["dd.MM.yyyy", "MM/dd/yyyy HH:mm", *EPOCHS]),
]
#: What `numbers: decimal` means: exact, with room for amounts in any currency.
MONEY: Final = Decimal(38, 10)
NumberType: TypeAlias = Annotated[
    DataType,
    Parsed(number_type),
    _text_schema(examples=["decimal", "decimal(18,4)", "double"]),
]
Duration: TypeAlias = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(format_duration),
    _text_schema(pattern=DURATION_PATTERN, examples=["30d", "15m"]),
]
Retention: TypeAlias = Annotated[
    timedelta | Literal["keep"],
    BeforeValidator(_retention),
    PlainSerializer(_retention_text),
    _text_schema(pattern=f"^keep$|{DURATION_PATTERN}", examples=["keep", "30d"]),
]
Size: TypeAlias = Annotated[
    int,
    BeforeValidator(_parsed(parse_size)),
    Field(gt=0),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "exclusiveMinimum": 0},
                {"type": "string", "pattern": SIZE_PATTERN},
            ],
            "examples": ["64MB"],
        }
    ),
]


ReloadMode: TypeAlias = Literal[
    "compare_and_apply_with_deleted_rows",
    "compare_and_apply_without_deleted_rows",
    "drop_and_create",
    "truncate_and_insert",
]
#: The mode in which no record is lost that the load lacks.
KEEPING: Final = "compare_and_apply_without_deleted_rows"
#: The default: the table becomes what the load holds.
DELETING: Final = "compare_and_apply_with_deleted_rows"
#: A load that is empty, or of which something went to quarantine: an error, taken as it is, or
#: taken so that the records that it lacks stay.
Incomplete: TypeAlias = Literal["refuse", "accept", "keep"]
