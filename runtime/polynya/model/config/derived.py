"""A transform as written in `tasks/*.yml`: tables that queries keep over the tables of tasks."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.engines import EngineSetting
from polynya.model.config.expectations import ResultExpectation, refuse_repeated_names
from polynya.model.config.fields import ClusterName, Column, Frozen, Name, Prefix, Retention, Size
from polynya.model.config.flow import Flow, FlowStep
from polynya.model.config.layout import PartitionBy, SortBy
from polynya.model.config.maintenance import Maintenance
from polynya.model.config.registered import RegisteredTask
from polynya.model.config.settings import DeleteMode, FormatVersion, ViewSettings
from polynya.model.config.task import StorageTask

#: The text of a query, or the file that holds it.
QueryText: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
#: How a step computes a query.
Incremental: TypeAlias = Literal["auto", "strict", "full"]


class ProjectInput(Frozen):
    """A task of another project, whose tables are only read."""

    project: Name = Field(
        description="The other project: the name of its folder below `projects`, which may be a "
        "symbolic link. Its target of the same name has the same catalog and warehouse."
    )
    task: Name = Field(
        description="The task there, of any kind that has tables and is not `registered`."
    )

    def __str__(self) -> str:
        return f"{self.project}/{self.task}"


#: What `from` names: a task of the project, or one of another project.
TaskInput: TypeAlias = Annotated[
    Annotated[Name, Tag("a task")] | Annotated[ProjectInput, Tag("a task of another project")],
    Discriminator(
        lambda value: (
            "a task of another project" if isinstance(value, dict | ProjectInput) else "a task"
        )
    ),
]


class DerivedTable(Frozen):
    """What every table of a query has, wherever the query comes from."""

    name: Name = Field(description="Name of the view; also names the internal table.")
    incremental: Incremental = Field(
        default="auto",
        description="`auto`: a step computes the rows that changes of the inputs may concern, "
        "where the query allows it and it is expected to be faster than the whole query. "
        "`strict`: the same without the comparison of times, and a query that does not allow it "
        "is refused. `full`: a step computes the whole query. Default: `auto`.",
    )
    expect: tuple[ResultExpectation, ...] = Field(
        default=(),
        max_length=100,
        description="What every result has to satisfy. All of it is judged before a step commits.",
    )
    history: bool = Field(
        default=False, description="Keep every version of every row. Default: false."
    )
    delete_mode: DeleteMode = Field(
        default="hard",
        description="What happens to rows that the query no longer returns, as for `storage`. "
        "Default: `hard`.",
    )
    partition_by: tuple[PartitionBy, ...] | None = Field(
        default=None, max_length=8, description="Partition columns or transforms, as for `storage`."
    )
    sort_by: tuple[SortBy, ...] | None = Field(
        default=None, max_length=8, description="Columns by which rows are sorted inside files."
    )
    target_file_size: Size | None = Field(
        default=None, description="Size of data files, as for `storage`."
    )
    changes_retention: Retention | None = Field(
        default=None, description="How long changes of the result are kept, as for `storage`."
    )
    format_version: FormatVersion | None = Field(
        default=None, description="Version of Iceberg's table format, as for `storage`."
    )
    maintenance: Maintenance | None = Field(
        default=None, description="Maintenance of the table, as for `storage`."
    )


class DerivedDataset(DerivedTable):
    """One table of a transform: what its query returns, by its keys."""

    sql: QueryText | None = Field(
        default=None,
        description="One `SELECT` in Spark's SQL over the tables of `from`, named as in queries: "
        "`schema.table`, or `table` where only one of them has this name, and `table__history` for "
        "all versions. Either the text itself, "
        "or a file of the project's folder `sql`, such as `sql/orders.sql`.",
    )
    flow: Flow | None = Field(
        default=None,
        description="Instead of `sql`: a list of processors, which become one query.",
    )
    keys: tuple[Column, ...] = Field(
        default=(),
        description="Columns of the query that together tell its rows apart. A row without a "
        "value for one of them, or two rows with the same values, refuse the result. Every table "
        "has some, a view has none.",
    )
    materialize: Literal["table", "view"] = Field(
        default="table",
        description="`table` keeps the rows of the query. `view` keeps none: a view of the catalog "
        "runs the query over the live views of its inputs whenever it is read. Default: `table`.",
    )

    @model_validator(mode="after")
    def _fits_its_rows(self) -> Self:
        written = self.model_fields_set - {"name", "sql", "flow", "materialize"}
        if self.materialize == "view" and written:
            first = next(name for name in type(self).model_fields if name in written)
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {
                    "message": f"a view keeps no rows, so it has no `{first}`",
                    "fix": f"remove `{first}`, or write `materialize: table`",
                },
            )
        if self.materialize == "table" and not self.keys:
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {
                    "message": "a table needs `keys`",
                    "fix": "name the columns that tell the rows of the query apart",
                },
            )
        return self

    @model_validator(mode="after")
    def _has_one_query(self) -> Self:
        if (self.sql is None) == (self.flow is None):
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {"message": "a dataset needs one of `sql` and `flow`", "fix": "write one of them"},
            )
        refuse_repeated_names(self.expect)
        return self


class DerivedTaskSettings(Frozen):
    """What a transform and a data mart have in common, besides what their tables are made of."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    name: Name = Field(description="Name of the task, unique in the project.")
    schema_: Name | None = Field(
        default=None, alias="schema", description="Schema of the views. Default: the task's name."
    )
    prefix: Prefix = Field(
        default="", description="Prefix of the names of all tables and views of the task."
    )
    internal_schema: Name | None = Field(
        default=None, description="Schema of the internal tables. Default: `<schema>_internal`."
    )
    views: ViewSettings = Field(
        default_factory=ViewSettings, description="Names and columns of the views."
    )
    engine: EngineSetting | None = Field(
        default=None, description="Engine on which an agent runs this task, as for `storage`."
    )
    cluster: ClusterName | None = Field(
        default=None,
        description="Cluster whose agents run this task. Default: `cluster` of the project.",
    )


class ReadingTask(DerivedTaskSettings):
    """A task over the tables of others."""

    from_: tuple[TaskInput, ...] = Field(
        alias="from",
        min_length=1,
        description="The tasks whose tables it reads: of kind `storage`, `streaming_transform`, "
        "`transform`, `data_mart`, or for a transform `registered`. "
        "`{project: crm_core, task: customers}` is a task of another project.",
    )

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of these tasks; one of another project is `project/task`."""
        return tuple(map(str, self.from_))


class TransformTask(ReadingTask):
    """Keeps tables that queries make of the tables of other tasks."""

    kind: Literal["transform"] = Field(description="Kind of the task.")
    datasets: tuple[DerivedDataset, ...] = Field(min_length=1, description="The tables.")


class DerivedQuery(Frozen):
    """The query of one table: its text or its flow, and what its results have to satisfy.

    `path` leads to the setting of its task; `file` holds the text, where it is not in the task.
    `expressions` are parts of the text that a person wrote, with the paths of their settings.
    `reads_own` says whether it reads tables of its own task, which themselves do not.
    `valid` are the columns that say from when to when a row holds: of the versions that it reads,
    those of another time made other rows.
    """

    path: tuple[str | int, ...]
    text: str = ""
    flow: tuple[FlowStep, ...] = ()
    file: str | None = None
    incremental: Incremental = "auto"
    expressions: tuple[tuple[tuple[str | int, ...], str], ...] = ()
    reads_own: bool = False
    valid: tuple[str, str] | None = None
    expect: tuple[ResultExpectation, ...] = ()

    def path_of_expectation(self, number: int) -> tuple[str | int, ...]:
        """The path of an expectation in the settings of its task, by its number from 0."""
        return (*self.path[:-1], "expect", number)


class ForeignTask(StorageTask):
    """A task of another project, as an input. No file says this: it is never run or written.

    Its `name` is `project/task`; `own_name` is that in its project.
    """

    project: Name = Field(description="The other project.")
    own_name: Name = Field(description="The name that the task has there.")

    @classmethod
    def of(cls, task: StorageTask, project: str) -> ForeignTask:
        """The task of another project."""
        settings = {name: getattr(task, name) for name in StorageTask.model_fields}
        # Not checked: the name is none of a file, and the settings were checked there.
        made = settings | {"name": f"{project}/{task.name}", "own_name": task.name}
        return cls.model_construct(task.model_fields_set, project=project, **made)


class DerivedTask(StorageTask):
    """A storage task whose rows come from queries. No file says this: a transform becomes one."""

    queries: dict[str, DerivedQuery] = Field(description="The query of each dataset, by its name.")
    reads: tuple[StorageTask, ...] = Field(description="The tasks whose tables it may read.")
    registered: tuple[RegisteredTask, ...] = Field(
        default=(), description="Likewise, those whose tables others maintain."
    )
    query_views: dict[str, DerivedQuery] = Field(
        default_factory=dict, description="The queries that no table keeps, by their names."
    )
    depth: int = Field(description="1 over tasks that read no other tables, else one more.")

    def query_of(self, name: str) -> DerivedQuery:
        """The query of a dataset or a view."""
        return self.queries[name] if name in self.queries else self.query_views[name]

    def stage_of(self, name: str) -> int:
        """The stage in which a run that ends derives a dataset: after all that it reads."""
        return self.depth + self.queries[name].reads_own

    @property
    def last_stage(self) -> int:
        """The stage in which all tables of the task have been derived."""
        return max(map(self.stage_of, self.queries), default=self.depth)

    def view_of(self, name: str) -> str:
        """`schema.view` of a query that no table keeps."""
        return f"{self.schema_}.{self.prefix}{name}"
