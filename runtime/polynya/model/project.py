"""The project file `polynya.yml`: targets and defaults."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from polynya.model.fields import Frozen, Name
from polynya.model.settings import DatasetSettings


class Catalog(Frozen):
    """The Iceberg catalog of a target."""

    type: Literal["jdbc"] = Field(
        default="jdbc", description="`jdbc`: an Iceberg JDBC catalog on SQLite, for one machine."
    )
    uri: str | None = Field(
        default=None,
        min_length=1,
        description="JDBC address. Default: SQLite in `catalog.db` inside the warehouse.",
    )
    properties: dict[str, str] = Field(
        default_factory=dict,
        description="Further Iceberg catalog properties, passed on as they are.",
    )


class Target(Frozen):
    """One place to run in: where files land and where tables live."""

    landing: str = Field(
        min_length=1, description="Landing folder; relative to the project folder or absolute."
    )
    warehouse: str = Field(
        min_length=1, description="Warehouse folder; relative to the project folder or absolute."
    )
    catalog: Catalog = Field(default_factory=Catalog, description="The Iceberg catalog.")
    maven_repository: str | None = Field(
        default=None, description="Address of a Maven mirror from which jars are fetched."
    )


class Project(Frozen):
    """The project file: a name, targets and defaults for all tasks."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["project"] = Field(description="Always `project`.")
    name: Name = Field(description="Name of the project.")
    targets: dict[Name, Target] = Field(
        min_length=1, description="Places to run in, by name. `local` is taken when none is chosen."
    )
    defaults: DatasetSettings = Field(
        default_factory=DatasetSettings,
        description="Settings of all datasets; a task's `defaults` win.",
    )
