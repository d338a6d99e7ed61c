"""Tables that others maintain, as written in `tasks/*.yml`. They are only read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Column, Frozen, Name

#: `schema.table` in the catalog of the target. Any printable name: it is quoted where it is used.
CatalogTable: TypeAlias = Annotated[
    str, StringConstraints(max_length=512, pattern=r"^[^.\x00-\x1f\x7f]+\.[^.\x00-\x1f\x7f]+$")
]
#: Forms that name a folder.
FOLDERS: Final = ("parquet", "delta")
_SOURCES: Final = ("iceberg", *FOLDERS)


class RegisteredTable(Frozen):
    """One table that others write, in exactly one of the forms `iceberg`, `parquet`, `delta`."""

    name: Name = Field(description="Name of the table in queries, after `schema` of the task.")
    iceberg: CatalogTable | None = Field(
        default=None,
        description="An Iceberg table of the target's catalog, as `schema.table`.",
    )
    parquet: str | None = Field(
        default=None,
        min_length=1,
        max_length=1024,
        description="A folder of Parquet files: `s3://BUCKET/PREFIX`, or a local folder, relative "
        "to the project or absolute. All files below it belong to the table, except those whose "
        "name, or a folder of theirs, begins with `_` or `.`.",
    )
    delta: str | None = Field(
        default=None,
        min_length=1,
        max_length=1024,
        description="A folder that holds a Delta table, named as for `parquet`. Needs the extra "
        "`polynya[delta]`.",
    )
    keys: tuple[Column, ...] = Field(
        default=(),
        description="Columns that together tell the rows apart. Each step that reads a new version "
        "checks them. Default: rows may be equal, and each new version computes whole queries.",
    )
    changed_by: Column | None = Field(
        default=None,
        description="A column that gets another value with each change of a row, such as "
        "`updated_at`: rows of rewritten files that keep it count as unchanged. That is a promise "
        "of the owner, which Polynya does not check. Default: all rows of new files count as "
        "changed.",
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if sum(getattr(self, source) is not None for source in _SOURCES) != 1:
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {
                    "message": "a registered table needs one of `iceberg`, `parquet` and `delta`",
                    "fix": "write one of them",
                },
            )
        return self

    @model_validator(mode="after")
    def _has_keys_for_changes(self) -> Self:
        if self.changed_by is not None and not self.keys:
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {
                    "message": "`changed_by` needs `keys`: by them a row is found again",
                    "fix": "write `keys`, or remove `changed_by`",
                },
            )
        return self

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The columns that its settings name."""
        return self.keys if self.changed_by is None else (*self.keys, self.changed_by)

    @property
    def folder(self) -> str | None:
        """The folder of `parquet` or `delta`."""
        return self.parquet or self.delta

    @property
    def source(self) -> str:
        """The table or the folder, for messages."""
        return self.iceberg or self.folder or ""


class RegisteredTask(Frozen):
    """Makes tables that others maintain inputs of transforms. Polynya never writes them."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["registered"] = Field(description="Kind of the task.")
    name: Name = Field(description="Name of the task, unique in the project; `from` names it.")
    schema_: Name | None = Field(
        default=None,
        alias="schema",
        description="Schema of the tables in queries. Default: the task's name.",
    )
    tables: tuple[RegisteredTable, ...] = Field(min_length=1, description="The tables.")

    def datasets(self) -> tuple[RegisteredDataset, ...]:
        """The tables with their names in queries."""
        schema = self.schema_ or self.name
        return tuple(
            RegisteredDataset(self.name, RegisteredName(schema, table.name), table)
            for table in self.tables
        )


@dataclass(frozen=True, slots=True)
class RegisteredName:
    """What queries call a registered table."""

    schema: str
    view: str

    @property
    def current(self) -> str:
        """`schema.table`."""
        return f"{self.schema}.{self.view}"


@dataclass(frozen=True, slots=True)
class RegisteredDataset:
    """A registered table of a task, under its name in queries."""

    task: str
    relations: RegisteredName
    table: RegisteredTable
