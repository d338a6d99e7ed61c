"""A mirror as written in `tasks/*.yml`: the tables of a task shown in another warehouse."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import ClusterName, Duration, Frozen, Name, Pattern, Prefix
from polynya.model.config.schedule import Schedule
from polynya.model.config.server_connection import (
    DatabricksConnection,
    RedshiftConnection,
    SnowflakeConnection,
)
from polynya.model.config.task import StorageTask

#: The name of an object in a warehouse. Anything printable: it is quoted where it is used.
ObjectName: TypeAlias = Annotated[
    str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")
]
#: The same for a warehouse that stores names in small letters.
LowerObjectName: TypeAlias = Annotated[
    str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7fA-Z]+$")
]
ViewKind: TypeAlias = Literal["current", "history", "changes", "current_stored", "history_stored"]
#: How the target of a mirror is reached.
MirrorAccount: TypeAlias = SnowflakeConnection | RedshiftConnection | DatabricksConnection
#: A registration of a reader is not heeded for longer.
LONGEST_HOLD: Final = timedelta(hours=24)


class SnowflakeTarget(Frozen):
    """Where a mirror is in Snowflake. Names are as Snowflake stores them, mostly in capitals."""

    connection: Name = Field(description="Connection of `type: snowflake`.")
    database: ObjectName = Field(description="Database of the schema. It exists.")
    schema_: ObjectName = Field(
        alias="schema", description="Schema of the tables and views. It exists."
    )
    warehouse: ObjectName = Field(description="Warehouse that carries the statements out.")
    external_volume: ObjectName | None = Field(
        default=None,
        description="External volume of the warehouse's bucket. Required without "
        "`linked_database`.",
    )
    catalog_integration: ObjectName | None = Field(
        default=None,
        description="Catalog integration through which Snowflake finds the tables. Required "
        "without `linked_database`.",
    )
    linked_database: ObjectName | None = Field(
        default=None,
        description="A catalog-linked database, which has the tables by itself: the mirror then "
        "makes views only, and refreshes nothing. Default: none.",
    )

    @model_validator(mode="after")
    def _has_one_way(self) -> Self:
        parts = (self.external_volume, self.catalog_integration)
        if self.linked_database is None and None in parts:
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {
                    "message": "tables need `external_volume` and `catalog_integration`",
                    "fix": "name both, or a `linked_database`",
                },
            )
        if self.linked_database is not None and parts != (None, None):
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {
                    "message": "a linked database has its own volume and integration",
                    "fix": "remove `external_volume` and `catalog_integration`",
                },
            )
        return self


class RedshiftMirrorTarget(Frozen):
    """Where a mirror is in Redshift. It makes views only: Redshift reads the tables of Glue.

    Names are in small letters, as Redshift stores them.
    """

    connection: Name = Field(description="Connection of `type: redshift`.")
    database: LowerObjectName = Field(description="Database of the schema. It exists.")
    schema_: LowerObjectName = Field(
        alias="schema",
        description="Schema of the views. It exists, and belongs to the mirror's user.",
    )
    external_schema: LowerObjectName | None = Field(
        default=None,
        description="External schema over the Glue database of the internal tables. It exists. "
        "Default: the name of that database, such as `shop_internal`.",
    )


class DatabricksMirrorTarget(Frozen):
    """Where a mirror is in Databricks. It makes views only, over a foreign catalog of Glue.

    Names are in small letters, as Unity Catalog stores them.
    """

    connection: Name = Field(description="Connection of `type: databricks`.")
    warehouse_id: str = Field(
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="Id of the SQL warehouse that carries the statements out.",
    )
    catalog: LowerObjectName = Field(description="Catalog of the schema. It exists.")
    schema_: LowerObjectName = Field(alias="schema", description="Schema of the views. It exists.")
    foreign_catalog: LowerObjectName = Field(
        description="Foreign catalog over Glue, in which the internal tables are. It exists."
    )


class MirrorTarget(Frozen):
    """The warehouse of a mirror: one of the three."""

    snowflake: SnowflakeTarget | None = Field(
        default=None, description="Where the mirror is in Snowflake."
    )
    redshift: RedshiftMirrorTarget | None = Field(
        default=None, description="Where the mirror is in Redshift."
    )
    databricks: DatabricksMirrorTarget | None = Field(
        default=None, description="Where the mirror is in Databricks."
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        named = [one for one in type(self).model_fields if getattr(self, one) is not None]
        if len(named) != 1:
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {
                    "message": "a mirror has one target",
                    "fix": "name `snowflake`, `redshift` or `databricks`; a second target is a "
                    "second mirror",
                },
            )
        return self

    @property
    def place(self) -> SnowflakeTarget | RedshiftMirrorTarget | DatabricksMirrorTarget:
        """The one that is named."""
        place = self.snowflake or self.redshift or self.databricks
        assert place is not None, "checked by the model"
        return place

    @property
    def family(self) -> Literal["snowflake", "redshift", "databricks"]:
        """The type of its connection."""
        if self.snowflake is not None:
            return "snowflake"
        return "databricks" if self.redshift is None else "redshift"


class MirrorViews(Frozen):
    """The views of a mirror."""

    kinds: tuple[ViewKind, ...] = Field(
        default=("current", "history", "changes"),
        description="Which views to make. `current_stored` and `history_stored` leave out pending "
        "changes and cost no more than a scan. Default: `[current, history, changes]`.",
    )
    secure: bool = Field(
        default=False,
        description="Snowflake: hide the text of the views from roles that do not own them. "
        "Default: false.",
    )
    prefix: Prefix = Field(
        default="", description="Prefix of the names of all tables and views of the mirror."
    )


class MirrorRefresh(Frozen):
    """When the target is told of new commits. Redshift and linked databases read them anyway."""

    after: Literal["apply", "commit"] | None = Field(
        default=None,
        description="`apply`: after each apply. `commit`: after each commit, so that the views "
        "show pending changes sooner. Default: `apply`, without `schedule` and `automatic`.",
    )
    schedule: Schedule | None = Field(
        default=None,
        description="A cron expression in UTC, or an iCalendar rule (RFC 5545). Default: none.",
    )
    automatic: bool = Field(
        default=False,
        description="Leave it to the target to look: Snowflake does by `AUTO_REFRESH`, Databricks "
        "when a table is queried. Default: false.",
    )
    at_most_every: Duration = Field(
        default=timedelta(seconds=60),
        description="Shortest time between two refreshes of a table. Default: `60s`.",
    )
    stale_after: Duration = Field(
        default=timedelta(minutes=15),
        description="How far a table may be behind before it is reported as stale. Default: `15m`.",
    )
    hold_snapshots: Duration = Field(
        default=LONGEST_HOLD,
        description="How long maintenance keeps a snapshot for a target that was not refreshed, "
        "at most `24h`. Default: `24h`.",
    )

    @model_validator(mode="after")
    def _has_one_rule(self) -> Self:
        rules = (self.after is not None) + (self.schedule is not None) + self.automatic
        if rules > 1:
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {
                    "message": "`after`, `schedule` and `automatic` exclude each other",
                    "fix": "keep one of them",
                },
            )
        if self.hold_snapshots > LONGEST_HOLD:
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {
                    "message": "a mirror holds snapshots for 24 hours at most",
                    "fix": "raise `maintenance.snapshot_expiry.age` of the datasets to keep them "
                    "longer",
                },
            )
        return self

    @property
    def follows_commits(self) -> bool:
        """Whether each commit is a reason for a refresh, and not only an apply."""
        return self.after == "commit"


class MirrorTask(Frozen):
    """Shows the tables of a task in another warehouse, without a copy of their data."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["mirror"] = Field(description="Kind of the task.")
    name: Name = Field(description="Name of the task, unique in the project.")
    from_: Name = Field(
        alias="from",
        description="The task of kind `storage` or `streaming_transform` whose tables are shown.",
    )
    include: tuple[Pattern, ...] = Field(
        default=("*",), description="Globs of the names of datasets. Default: all of the task."
    )
    exclude: tuple[Pattern, ...] = Field(
        default=(), description="Globs of datasets to leave out; overrides `include`."
    )
    target: MirrorTarget = Field(description="The warehouse that shows them.")
    views: MirrorViews = Field(default_factory=MirrorViews, description="The views to make.")
    refresh: MirrorRefresh = Field(
        default_factory=MirrorRefresh,
        description="How the target hears of new commits, and how often.",
    )
    schema_evolution: Literal["follow", "freeze"] = Field(
        default="follow",
        description="`follow` replaces views when the columns of their dataset change. `freeze` "
        "keeps them as they are, and says that they are behind. Default: `follow`.",
    )
    cluster: ClusterName | None = Field(
        default=None,
        description="Cluster whose agents run this task. Default: `cluster` of the project.",
    )


class ConnectedMirror(MirrorTask):
    """A mirror as a run has it."""

    account: MirrorAccount = Field(description="The connection of the target.")
    source: StorageTask = Field(description="The task whose tables are shown.")
    project: str = Field(description="Name of the project, for the marks of what it makes.")


def mirror_of(
    task: MirrorTask, account: MirrorAccount, source: StorageTask, project: str
) -> ConnectedMirror:
    """The mirror with its connection, the task that it shows and the name of its project."""
    values = {name: getattr(task, name) for name in MirrorTask.model_fields}
    return ConnectedMirror.model_construct(
        **values, account=account, source=source, project=project
    )
