"""Expectations of a derived table as written in a transform: what each result has to satisfy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Column, Duration, Expression, Frozen
from polynya.model.config.flow import MAX_LISTED, Constant, InputName

#: The settings of which an expectation has one.
KINDS: Final = (
    "not_null", "unique", "accepted_values", "range", "condition", "relationship", "freshness",
    "row_count",
)  # fmt: skip
#: Those that judge each row by itself. The others need all rows of the table.
ROW_KINDS: Final = frozenset({"not_null", "accepted_values", "range", "condition"})
_MOST_SHOWN: Final = 80

_Columns: TypeAlias = Annotated[tuple[Column, ...], Field(min_length=1, max_length=100)]


def _refuse(message: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


class AcceptedValues(Frozen):
    """The values that a column may have."""

    column: Column = Field(description="The column. NULL passes.")
    values: tuple[Constant, ...] = Field(
        min_length=1,
        max_length=MAX_LISTED,
        description="The values, as the type of the column writes them; times and dates as text.",
    )


class ValueRange(Frozen):
    """The smallest and the greatest value of a column."""

    column: Column = Field(description="The column. NULL passes, NaN does not.")
    min: Constant | None = Field(default=None, description="The smallest value that passes.")
    max: Constant | None = Field(default=None, description="The greatest value that passes.")

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        if self.min is None and self.max is None:
            raise _refuse("every value is in this range", "write `min` or `max`")
        if (
            isinstance(self.min, int | float)
            and isinstance(self.max, int | float)
            and self.min > self.max
        ):
            raise _refuse("no value is in this range", "write a `max` that is not below `min`")
        return self


class TableRelationship(Frozen):
    """Columns whose values another table has."""

    columns: _Columns = Field(description="Columns of this table. A row with NULL in one passes.")
    to: InputName = Field(
        description="A table of the tasks in `from`, named as in queries. It is read at the same "
        "moment as the tables of the query, and its changes cause a step."
    )
    to_columns: _Columns | None = Field(
        default=None,
        description="The columns there, in the same order. Default: those of the same names.",
    )

    @model_validator(mode="after")
    def _has_pairs(self) -> Self:
        if self.to_columns is not None and len(self.to_columns) != len(self.columns):
            raise _refuse(
                "`columns` and `to_columns` have different lengths",
                "name one column there for each column here",
            )
        return self

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each column here with the one there."""
        return list(zip(self.columns, self.to_columns or self.columns, strict=True))


class ColumnFreshness(Frozen):
    """How old the newest value of a time column may be."""

    column: Column = Field(description="A column of type `timestamp`, `timestamp_ntz` or `date`.")
    within: Duration = Field(
        description="The greatest age of its newest value when a step begins, such as `2h`. A time "
        "without a zone is taken as UTC, a date as its first moment. A table without a value fails."
    )


class RowCount(Frozen):
    """How many rows the table may have."""

    min: int | None = Field(default=None, ge=0, description="The smallest number that passes.")
    max: int | None = Field(default=None, ge=0, description="The greatest number that passes.")

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        if self.min is None and self.max is None:
            raise _refuse("every number of rows passes", "write `min` or `max`")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise _refuse("no number of rows passes", "write a `max` that is not below `min`")
        return self


class ResultExpectation(Frozen):
    """What every result of a query has to satisfy. One of the settings below `on_failure`."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        default=None,
        description="Its name in messages and in `status`. Default: made of what it expects, such "
        "as `not_null(total)`.",
    )
    on_failure: Literal["warn", "quarantine", "stop"] = Field(
        default="stop",
        description="`stop` refuses the step: the table stays at its last result. `warn` commits "
        "it, with an event and a line in `status`. `quarantine` likewise, but the rows that fail "
        "go to the quarantine of the table in place of the table, for as long as they fail; only "
        "for expectations that judge each row by itself. Default: `stop`.",
    )
    not_null: _Columns | None = Field(
        default=None, description="Columns that have a value in every row."
    )
    unique: _Columns | None = Field(
        default=None,
        description="Columns whose values no two rows share. Rows with NULL in one of them pass.",
    )
    accepted_values: AcceptedValues | None = Field(
        default=None, description="The values that a column may have."
    )
    range: ValueRange | None = Field(
        default=None, description="The smallest and the greatest value of a column, inclusive."
    )
    condition: Expression | None = Field(
        default=None,
        description="Spark SQL condition over the columns of a row. False and NULL fail.",
    )
    relationship: TableRelationship | None = Field(
        default=None, description="Columns whose values a row of another table has."
    )
    freshness: ColumnFreshness | None = Field(
        default=None, description="How old the newest value of a column may be."
    )
    row_count: RowCount | None = Field(
        default=None, description="How many rows the table may have."
    )

    @model_validator(mode="after")
    def _expects_one_thing(self) -> Self:
        written = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(written) != 1:
            raise _refuse(
                f"an expectation has one of {', '.join(f'`{kind}`' for kind in KINDS)}",
                "write each as an item of its own" if written else "write one of them",
            )
        if self.on_failure == "quarantine" and self.kind not in ROW_KINDS:
            raise _refuse(
                f"`{self.kind}` looks at more than one row, so it does not say which rows fail",
                "write `on_failure: warn` or `stop`; quarantine is for "
                + ", ".join(f"`{kind}`" for kind in KINDS if kind in ROW_KINDS),
            )
        return self

    @property
    def kind(self) -> str:
        """Which of `KINDS` it has."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def label(self) -> str:
        """Its name: the one that it is given, or what it expects."""
        if self.name is not None:
            return self.name
        if self.kind == "row_count":
            return self.kind
        about = getattr(self, self.kind)
        if isinstance(about, Frozen):
            about = getattr(about, "column", None) or getattr(about, "columns", ())
        text = about if isinstance(about, str) else ", ".join(about)
        return f"{self.kind}({' '.join(text.split())[:_MOST_SHOWN]})"


def refuse_repeated_names(expectations: Iterable[ResultExpectation]) -> None:
    """Raise what pydantic takes as a refusal for two expectations of one name."""
    seen: set[str] = set()
    for expectation in expectations:
        if expectation.label in seen:
            raise _refuse(
                f"two expectations are called `{expectation.label}`", "give each its own `name`"
            )
        seen.add(expectation.label)
