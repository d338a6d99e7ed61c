"""Users' tests of their tasks as written in `tests/*.yml`: what lands, and what the tables show."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, JsonValue, WithJsonSchema
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Frozen, Name, RelativePath

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


class Batch(Frozen):
    """What lands and is copied in one step. One of `events`, `lines` and `folder`."""

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


class Expectation(Frozen):
    """The rows of a dataset after the last batch. Views that are left out are not compared.

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
        description="Rejected records by `file`, `offset`, `rule`, `error` and `raw`.",
    )


class TaskTest(Frozen):
    """One test: batches for a dataset, and the rows that must come of them."""

    name: str = Field(
        min_length=1,
        max_length=200,
        description="Name of the test, as a sentence; unique in the file.",
    )
    task: Name = Field(description="Name of the task.")
    dataset: Name | None = Field(
        default=None, description="Name of the dataset. Default: the only declared one."
    )
    clock: Moment = Field(
        default=DEFAULT_CLOCK, description="Time at which the engine's clock is fixed."
    )
    given: tuple[Batch, ...] = Field(
        min_length=1, description="Batches, copied one after the other."
    )
    expect: Expectation = Field(description="The rows expected at the end.")


class TaskTests(Frozen):
    """A file of tests. They run in tables of their own, never in those of the project."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["tests"] = Field(description="Always `tests`.")
    tests: tuple[TaskTest, ...] = Field(min_length=1, description="The tests.")
