"""Settings of a dataset whose source gives nothing but full extracts."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from polynya.model.config.fields import Column, FileName, Frozen, NameTime

#: What becomes of the records that an extract lacks.
Absent: TypeAlias = Literal["delete", "keep"]


class Extracts(Frozen):
    """Each landed file or folder is a full extract of the table; the engine finds the changes."""

    each: Literal["file", "folder"] = Field(
        default="file", description="One extract is a file, or all files of a folder."
    )
    marker: FileName = Field(
        default="_SUCCESS",
        description="For `each: folder`: the file that marks a folder as complete. Default: "
        "`_SUCCESS`.",
    )
    time_in_name: NameTime | None = Field(
        default=None,
        description="Format of the time (UTC) in the path of an extract, such as `%Y-%m-%d`, with"
        " the directives %Y %m %d %H %M %S %f %j. It orders the extracts and is the "
        "time of their changes. Without it: the order of the names, and the time at "
        "which reading began.",
    )
    absent: Absent = Field(
        default="delete",
        description="What happens to records that are missing from an extract: `delete` or `keep`. "
        "Default: `delete`.",
    )
    incomplete: Literal["keep", "accept"] = Field(
        default="keep",
        description="An extract that is empty, or with records in quarantine: `keep` the records "
        "that are missing from it, or `accept` it as complete. Default: `keep`.",
    )
    check_columns: tuple[Column, ...] | None = Field(
        default=None,
        min_length=1,
        description="A record has changed when one of these columns differs. Default: all.",
    )
    updated_at: Column | None = Field(
        default=None,
        description="A record has changed when this column is greater than before. It is also the "
        "time of the change, unless `timestamp` names another column. Not together with "
        "`check_columns`.",
    )
