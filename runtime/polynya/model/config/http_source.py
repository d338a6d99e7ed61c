"""A REST API as the source of a streaming landing: its resources, pages and positions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Duration, Frozen, Name
from polynya.model.config.http_connection import HttpConnection, Token
from polynya.model.config.settings import RecordPath
from polynya.model.names import shown

#: A part of a path that a field of the parent's record fills in.
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_FIELD: Final = re.compile(r"[^.\[\]*\"'\s/]+(?:\.[^.\[\]*\"'\s/]+)*")


def _refuse(message: str, fix: str | None = None) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


def _path(text: str) -> str:
    bare = _PLACEHOLDER.sub("x", text)
    if any(ord(sign) <= 32 for sign in text) or any(sign in bare for sign in "?#{}\\"):
        raise _refuse(
            f"{shown(text)} is not the path of a resource",
            "write for example `/orders`; what comes after `?` goes to `parameters`",
        )
    if "//" in text or {".", ".."} & set(bare.split("/")):
        raise _refuse(f"{shown(text)} has a part that is empty, `.` or `..`")
    for field in _PLACEHOLDER.findall(text):
        if not _FIELD.fullmatch(field):
            raise _refuse(
                f"`{{{field}}}` names no field of the parent's records", "write for example `{id}`"
            )
    return text


ResourcePath: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=2000), AfterValidator(_path)
]
Scalar: TypeAlias = bool | int | float | str


class PageNumbers(Frozen):
    """Pages with numbers. The read ends after an empty page, or as `total_pages` or `more` say."""

    type: Literal["page"] = Field(description="Kind of the pagination.")
    parameter: Token = Field(
        default="page", description="Parameter with the number of the page. Default: `page`."
    )
    first: int = Field(default=1, ge=0, description="Number of the first page. Default: 1.")
    total_pages: RecordPath | None = Field(
        default=None, description="Path of the number of pages in an answer, such as `$.pages`."
    )
    more: RecordPath | None = Field(
        default=None,
        description="Path of a boolean that says whether there are more pages, such as "
        "`$.has_more`.",
    )


class Offsets(Frozen):
    """Pages from a record on. The read ends after an empty page, or as `total` or `more` say."""

    type: Literal["offset"] = Field(description="Kind of the pagination.")
    parameter: Token = Field(
        default="offset",
        description="Parameter with the number of records to skip. Default: `offset`.",
    )
    total: RecordPath | None = Field(
        default=None, description="Path of the number of records in an answer, such as `$.total`."
    )
    more: RecordPath | None = Field(
        default=None,
        description="Path of a boolean that says whether there are more pages, such as "
        "`$.has_more`.",
    )


class Cursors(Frozen):
    """Each answer has a cursor for the next page. The read ends when one has none."""

    type: Literal["cursor"] = Field(description="Kind of the pagination.")
    parameter: Token = Field(
        default="cursor", description="Parameter that takes the cursor. Default: `cursor`."
    )
    path: RecordPath | None = Field(
        default=None, description="Path of the cursor in an answer, such as `$.meta.next`."
    )
    header: Token | None = Field(
        default=None, description="Header of the answer with the cursor; instead of `path`."
    )
    more: RecordPath | None = Field(
        default=None,
        description="Path of a boolean that says whether there are more pages, for an API whose "
        "last page has a cursor too.",
    )

    @model_validator(mode="after")
    def _has_one_place(self) -> Self:
        if (self.path is None) == (self.header is None):
            raise _refuse("a cursor is in `path` or in `header`", "write exactly one of them")
        return self


class LinkHeader(Frozen):
    """The header `Link` of an answer has the address of the next page, `rel="next"` (RFC 8288)."""

    type: Literal["link"] = Field(description="Kind of the pagination.")


class NextAddress(Frozen):
    """Each answer has the address of the next page. The read ends when one has none."""

    type: Literal["next_url"] = Field(description="Kind of the pagination.")
    path: RecordPath = Field(description="Path of the address in an answer, such as `$.next`.")


Pagination: TypeAlias = Annotated[
    PageNumbers | Offsets | Cursors | LinkHeader | NextAddress, Field(discriminator="type")
]


class Incremental(Frozen):
    """Each read asks only for records from the highest value on that the read before it met.

    `start` says what the values are: a number, a time or a date. They are sent as it is written.
    """

    field: RecordPath = Field(
        description="Path of the value in a record, such as `$.updated_at`. It has to grow "
        "whenever a record is added or changed."
    )
    parameter: Token = Field(
        description="Parameter that asks for records from a value on, such as `updated_since`."
    )
    start: Annotated[int | str, Field(union_mode="left_to_right")] = Field(
        description="Value for the first read: a number, a date or a time such as "
        "`2026-01-01T00:00:00Z`, as the API writes it."
    )
    overlap: Annotated[int, Field(ge=0)] | Duration = Field(
        default=0,
        description="How far before the highest value a read begins: a duration for times and "
        "dates, a number for numbers. It covers records that become visible late. Default: 0.",
    )
    full_every: Duration | None = Field(
        default=None,
        description="How often a read begins at `start` again. It finds what an overlap missed. "
        "Default: never.",
    )

    @model_validator(mode="after")
    def _values_agree(self) -> Self:
        is_number = isinstance(self.start, int)
        if isinstance(self.start, str):
            try:
                datetime.fromisoformat(self.start)
            except ValueError:
                raise _refuse(
                    f"{shown(self.start)} is not a number, a date or a time",
                    "write for example `2026-01-01T00:00:00Z` or `0`",
                ) from None
        wrong = (
            isinstance(self.overlap, timedelta)
            if is_number
            else bool(isinstance(self.overlap, int) and self.overlap)
        )
        if wrong:
            raise _refuse(
                "`overlap` and `start` are of different kinds",
                "write a number for numbers, and a duration such as `5m` for times and dates",
            )
        return self


class Resource(Frozen):
    """One list of records of the API."""

    path: ResourcePath = Field(
        description="Path below the address of the connection, such as `/orders`. With `parent`, "
        "`{FIELD}` stands for a field of the parent's record."
    )
    parent: Name | None = Field(
        default=None,
        description="Resource of this task whose landed records fill in `path`: this resource is "
        "read once for each of them, whenever it lands. Default: none.",
    )
    parameters: dict[Token, Scalar | tuple[Scalar, ...]] = Field(
        default_factory=dict,
        description="Parameters of each request; a list repeats one. Default: none.",
    )
    record_path: RecordPath = Field(
        default="$",
        description="Path of the records in an answer: `$` for the answer itself, or for example "
        "`$.data.items`. An array there holds many records, an object is one. Default: `$`.",
    )
    pagination: Pagination | None = Field(
        default=None, description="How the next page is found. Default: one page has everything."
    )
    incremental: Incremental | None = Field(
        default=None,
        description="Read only what is new or changed. Default: each read takes everything.",
    )
    every: Duration | None = Field(
        default=None, description="How often it is read. Default: `every` of the source."
    )
    max_pages: int = Field(
        default=100_000,
        ge=1,
        description="Most pages of one read; more are an error, since a server may never end. "
        "Default: 100,000.",
    )

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The fields of the parent's record in the path, once each."""
        return tuple(dict.fromkeys(_PLACEHOLDER.findall(self.path)))

    def path_for(self, values: Mapping[str, str]) -> str:
        """The path with values in place of the fields; they are quoted already."""
        return _PLACEHOLDER.sub(lambda match: values[match[1]], self.path)


class HttpSource(Frozen):
    """Resources of a REST API."""

    connection: Name = Field(
        description="Connection of `type: http`: a file `connections/NAME.yml`."
    )
    every: Duration = Field(
        default=timedelta(hours=1),
        description="How often each resource is read, from the begin of one read to that of the "
        "next. `run --once` reads at once. Default: `1h`.",
    )
    resources: dict[Name, Resource] = Field(
        min_length=1,
        description="Resources to land, by name. Each has a landed table of that name.",
    )

    def period(self, name: str) -> timedelta:
        """How often a resource is read."""
        return self.resources[name].every or self.every


class ConnectedHttpSource(HttpSource):
    """The source as a run has it."""

    api: HttpConnection = Field(description="The connection with the overrides of the target.")


def connected_source(source: HttpSource, api: HttpConnection) -> ConnectedHttpSource:
    """The source with its connection."""
    said: dict[str, Any] = {name: getattr(source, name) for name in source.model_fields_set}
    return ConnectedHttpSource(**said, api=api)
