"""Where a streaming landing reads files that others put into a folder or a bucket."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Self, TypeAlias

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Duration, Frozen
from polynya.model.contract.file_pattern import file_pattern

_LOOK_BACK: Final = timedelta(days=1)


def _refuse(message: str, fix: str | None = None) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


def _pattern(text: str) -> str:
    try:
        file_pattern(text)
    except ValueError as error:
        fix = "write for example `<yyyy>/<MM>/<dd>/part-*.json.gz`, from the year to the minute"
        raise _refuse(str(error), fix) from None
    return text


FilePatternText: TypeAlias = Annotated[
    str,
    AfterValidator(_pattern),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "examples": ["<yyyy>/<MM>/<dd>/part-*.json.gz"],
        }
    ),
]


class FilesSource(Frozen):
    """Files below a folder or a place in a bucket, found by the dates in their paths."""

    url: str = Field(
        min_length=1,
        max_length=2000,
        description="Location of the files: `s3://BUCKET/PREFIX`, or a folder, relative to the "
        "project or absolute.",
    )
    pattern: FilePatternText = Field(
        description="Paths of the files below `url`. `<yyyy>`, `<MM>`, `<dd>`, `<HH>` and `<mm>` "
        "are the parts of a date in UTC, also inside names; `*` is any text within "
        "one folder or name. Only prefixes that the dates predict are listed."
    )
    look_back: Duration = Field(
        default=_LOOK_BACK,
        description="How long after its date a file may still arrive. The files of this period "
        "are listed each time. Default: `1d`.",
    )
    initial_load: FilePatternText | None = Field(
        default=None,
        description="Paths of files that are read once, before all others and whatever their "
        "dates, such as `full/part-*.json.gz`. Later files of this pattern are "
        "ignored.",
    )
    delete_after_load: bool = Field(
        default=False,
        description="Delete a file once all its records have landed. Default: false.",
    )

    @model_validator(mode="after")
    def _is_not_the_same_twice(self) -> Self:
        if self.initial_load == self.pattern:
            raise _refuse(
                "`initial_load` names the same files as `pattern`",
                "leave it out: with `start_from: earliest` all files are read",
            )
        return self

    @property
    def has_dates(self) -> bool:
        """Whether the paths of the files hold dates."""
        return file_pattern(self.pattern).unit is not None
