"""Users' tests of their tasks as written in `tests/*.yml`: what lands, and what the tables show."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, JsonValue, WithJsonSchema
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Column, ColumnType, Frozen, Name, RelativePath
from polynya.model.config.flow import InputName
from polynya.model.error_catalogue.derived import EXPECTATION_FAILED

#: Where the engine's clock stands unless a test says otherwise.
DEFAULT_CLOCK: Final = "2026-01-01T00:00:00Z"
#: The relations that an expectation can describe, in the order in which they are compared.
RELATIONS: Final = ("current", "history", "changes", "quarantined")


def moment(text: str) -> datetime:
    """Return the time that an ISO 8601 text with a zone names; raises ValueError."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"`{text}` has no zone")
    return found.astimezone(UTC)


def _checked_moment(text: str) -> str:
    try:
        moment(text)
    except ValueError:
        message = "write a time as ISO 8601 with its zone, for example `2026-01-01T00:00:00Z`"
        raise PydanticCustomError("polynya_value", "{message}", {"message": message}) from None
    return text


Moment: TypeAlias = Annotated[
    str,
    AfterValidator(_checked_moment),
    WithJsonSchema({"type": "string", "examples": [DEFAULT_CLOCK]}),
]
#: One event as the source writes it, or the columns of a row that are looked at.
Record: TypeAlias = Annotated[dict[str, JsonValue], WithJsonSchema({"type": "object"})]


class Expectation(Frozen):
    """The rows of a dataset after a batch. Views that are left out are not compared.

    Rows may name only some columns, in any order of rows; there may be no other rows.
    """

    current: tuple[Record, ...] | None = Field(
        default=None, description="Rows of the Current view."
    )
    history: tuple[Record, ...] | None = Field(
        default=None, description="Rows of the History view."
    )
    changes: tuple[Record, ...] | None = Field(
        default=None, description="Rows of the Changes view: pending events."
    )
    quarantined: tuple[Record, ...] | None = Field(
        default=None,
        description="Rejected records by `file`, `offset`, `rule`, `error` and `raw`. Not for "
        "transforms.",
    )


class GivenInput(Frozen):
    """A table to which a test of a transform gives rows, as far as its task does not tell."""

    keys: tuple[Column, ...] | None = Field(
        default=None,
        min_length=1,
        description="Columns that tell its rows apart. Default: the `keys` of its dataset.",
    )
    columns: dict[Column, ColumnType] = Field(
        default={},
        description="Types of columns, as in `columns` of a dataset. Default: those that its "
        "dataset declares, else the type of the values.",
    )


class Batch(Frozen):
    """What lands and is copied in one step.

    For a task that reads files or messages one of `events`, `lines` and `folder`; for a transform
    `rows`, `deletes` or both.
    """

    events: tuple[Record, ...] | None = Field(
        default=None,
        min_length=1,
        description="For `json`, `debezium`, `parquet` and streams: records. In Parquet a column "
        "has the type that `columns` declares, otherwise the type of its values. For "
        "a stream each record is a JSON message; its header columns, such as "
        "`hdr__kafka_key`, replace those of the source.",
    )
    lines: str | None = Field(
        default=None,
        min_length=1,
        description="For `json`, `csv`, `debezium`: the text of a file as it lands. For streams: "
        "a message in each line.",
    )
    folder: RelativePath | None = Field(
        default=None,
        description="For every format: a folder below the project folder; its files land below "
        "`landing.path` unchanged.",
    )
    file: RelativePath | None = Field(
        default=None,
        description="Path below `landing.path` under which `events` or `lines` land. Default: "
        "derived from the `path` of the dataset.",
    )
    rows: dict[InputName, tuple[Record, ...]] | None = Field(
        default=None,
        min_length=1,
        description="For transforms: rows of tables that the queries read, named as in queries. A "
        "row is inserted, or takes the place of the one with the same keys.",
    )
    deletes: dict[InputName, tuple[Record, ...]] | None = Field(
        default=None,
        min_length=1,
        description="For transforms: the keys of rows that are deleted, by their tables. Within a "
        "batch, after `rows`.",
    )
    expect: dict[InputName, Expectation] | None = Field(
        default=None,
        min_length=1,
        description="For transforms: the rows of tables after the batch, named as in queries: "
        "those of the task, and of transforms that it reads.",
    )
    fails: Annotated[str, Field(pattern=r"^POLYNYA-[A-Z]{2,6}-[0-9]{3}$")] | None = Field(
        default=None,
        description="For transforms: code of the error with which a step of this batch has to "
        f"fail, such as `{EXPECTATION_FAILED.code}`.",
    )
    load: bool = Field(
        default=False,
        description="The batch belongs to the first full load: it lands where `initial_load` "
        "matches.",
    )
    clock: Moment | None = Field(
        default=None, description="Set the engine's clock before the batch is copied."
    )
    apply: bool = Field(
        default=False,
        description="Apply pending changes after the batch. Query results stay the same.",
    )


class TaskTest(Frozen):
    """One test: batches for a dataset or a transform, and the rows that must come of them."""

    name: str = Field(
        min_length=1,
        max_length=200,
        description="Name of the test, as a sentence; unique in the file.",
    )
    task: Name = Field(description="Name of the task.")
    dataset: Name | None = Field(
        default=None,
        description="Name of the dataset. Default: the only declared one. Not for transforms.",
    )
    inputs: dict[InputName, GivenInput] = Field(
        default={},
        description="For transforms: keys and types of the tables in `rows`, named as there.",
    )
    clock: Moment = Field(
        default=DEFAULT_CLOCK, description="Time at which the engine's clock is fixed."
    )
    given: tuple[Batch, ...] = Field(
        min_length=1, description="Batches, copied one after the other."
    )
    expect: Expectation | None = Field(
        default=None,
        description="The rows expected at the end. Transforms have it in the items of `given`.",
    )


class TaskTests(Frozen):
    """A file of tests. They run in tables of their own, never in those of the project."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["tests"] = Field(description="Always `tests`.")
    tests: tuple[TaskTest, ...] = Field(min_length=1, description="The tests.")
