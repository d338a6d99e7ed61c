"""A flow as written in a transform: processors in order, which become one SELECT."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Column, ColumnType, Expression, Frozen, Name, Prefix
from polynya.model.names import is_name, shown

MAX_STEPS: Final = 100
#: Columns that one list may name, and values that one may hold.
MAX_LISTED: Final = 2000
_MAX_TEXT: Final = 4000
#: Numbers with more digits fit no type of a table.
_MAX_DIGITS: Final = 38
_NOT_INCREMENTAL: Final = (
    "`incremental_filter` cannot be exact: rows that only an incremental step leaves out would be "
    "back after a full one"
)


def _refuse(message: str, fix: str, kind: str = "polynya_value") -> PydanticCustomError:
    return PydanticCustomError(kind, "{message}", {"message": message, "fix": fix})


def _shape(short: str, mapping: str) -> Discriminator:
    """Tell a mapping from the short form of the same setting, by the tags of both."""
    return Discriminator(lambda value: mapping if isinstance(value, dict | BaseModel) else short)


def _input_name(text: str) -> str:
    parts = text.split(".")
    if len(parts) > 2 or not all(map(is_name, parts)):
        raise _refuse(
            f"{shown(text)} is not the name of a step or a table",
            "write the name of an earlier step, `schema.table`, or `table`",
        )
    return text


def _constant(value: Any) -> Any:
    if not isinstance(value, str | int | float) or value is None:
        raise _refuse("one value is expected here", "write a text, a number, `true` or `false`")
    if isinstance(value, float) and not math.isfinite(value):
        raise _refuse("this number is too large", "write a number that a column can hold")
    if isinstance(value, int) and abs(value) >= 10**_MAX_DIGITS:
        raise _refuse("this number is too large", "write a number that a column can hold")
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        raise _refuse("this text is too long", f"write at most {_MAX_TEXT:,} characters")
    return value


InputName: TypeAlias = Annotated[
    str,
    AfterValidator(_input_name),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^[A-Za-z_][A-Za-z0-9_]{0,127}(\.[A-Za-z_][A-Za-z0-9_]{0,127})?$",
        }
    ),
]
#: A value that is the same for all rows.
Constant: TypeAlias = Annotated[
    bool | int | float | str,
    BeforeValidator(_constant),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}),
]
Columns: TypeAlias = Annotated[tuple[Column, ...], Field(min_length=1, max_length=MAX_LISTED)]


class NamedStep(Frozen):
    """What every processor has."""

    as_: Name | None = Field(
        default=None,
        alias="as",
        description="Name of the step, by which later steps read its rows. Default: the name of "
        "the processor and the number of the step, which no step can read by name.",
    )


class OneInputStep(NamedStep):
    """What processors of one input have."""

    input: InputName | None = Field(
        default=None,
        description="What is read: an earlier step by its `as`, or a table as `schema.table` or "
        "`table`. Default: the step before; for the first step the only table that there is.",
    )


def _one_of(values: dict[str, Any], names: str, example: str) -> None:
    """Refuse a mapping that has none of several keys, or two of them."""
    given = [name for name, value in values.items() if value is not None]
    if len(given) != 1:
        had = f"it has {' and '.join(f'`{name}`' for name in given)}" if given else "it has none"
        raise _refuse(f"exactly one of {names} is expected here; {had}", f"write {example}")


class JoinStep(OneInputStep):
    """Rows of two inputs side by side. `input` is the left one."""

    with_: InputName = Field(
        alias="with", description="The right input: an earlier step or a table."
    )
    type: Literal["inner", "left", "right", "full", "semi", "anti", "cross"] = Field(
        default="inner",
        description="Which rows are kept: `inner`, `left`, `right` and `full` as in SQL; `semi` "
        "keeps the left rows that have a match, `anti` those without one, both without columns of "
        "the right; `cross` is all pairs. Default: `inner`.",
    )
    on: (
        Annotated[
            Annotated[Columns, Tag("columns of both")]
            | Annotated[dict[Column, Column], Tag("left to right")],
            _shape("columns of both", "left to right"),
        ]
        | None
    ) = Field(
        default=None,
        description="Columns that have to be equal: a list where both inputs call them the same, "
        "or `left: right` lines. NULL equals nothing. The result has each pair once, by the name "
        "in the left input.",
    )
    condition: Expression | None = Field(
        default=None,
        description="Further Spark SQL condition of a match, such as `left.at >= right.valid_from "
        "AND left.at < right.valid_to`. Every column begins with `left.` or `right.`.",
    )
    prefix: Prefix = Field(
        default="",
        description="Put before the names of the right input's columns. Default: nothing; a name "
        "that both inputs have is then an error.",
    )

    @model_validator(mode="after")
    def _says_what_matches(self) -> Self:
        matched = bool(self.on) or self.condition is not None
        if self.type == "cross" and matched:
            raise _refuse(
                "a `cross` join has no condition", "remove `type`, or `on` and `condition`"
            )
        if self.type != "cross" and not matched:
            raise _refuse("nothing says which rows match", "write `on: [customer_id]`")
        return self


class UnionStep(NamedStep):
    """The rows of several inputs below each other, as often as they occur."""

    inputs: tuple[InputName, ...] = Field(
        min_length=2,
        max_length=50,
        description="Earlier steps or tables. Columns are matched by name. A column that one lacks "
        "is NULL in its rows; types that differ become the narrowest type that holds every value "
        "of both, or are an error.",
    )
    source: Column | None = Field(
        default=None,
        description="Name of a column that says from which input a row is, as written in `inputs`.",
    )


class AggregateColumn(Frozen):
    """A value of many rows: exactly one function, of a column or an expression."""

    count: Expression | None = Field(
        default=None, description="How many rows have a value, or `*` for the number of rows."
    )
    count_distinct: Expression | None = Field(default=None, description="How many values differ.")
    sum: Expression | None = Field(default=None, description="The sum.")
    avg: Expression | None = Field(default=None, description="The mean.")
    min: Expression | None = Field(default=None, description="The smallest value.")
    max: Expression | None = Field(default=None, description="The largest value.")
    any: Expression | None = Field(default=None, description="Whether it is true for some row.")
    every: Expression | None = Field(
        default=None, description="Whether it is true for each row that has a value."
    )
    sorted_list: Expression | None = Field(
        default=None, description="All values in an array, the smallest first, without NULL."
    )
    where: Expression | None = Field(
        default=None, description="Spark SQL condition; other rows do not count for this column."
    )

    @model_validator(mode="after")
    def _has_one_function(self) -> Self:
        functions = {name: getattr(self, name) for name in AGGREGATES}
        _one_of(functions, "the functions", "one of them, such as `{sum: amount}`")
        return self

    @property
    def function(self) -> str:
        """The name of its function."""
        return next(name for name in AGGREGATES if getattr(self, name) is not None)

    @property
    def argument(self) -> str:
        """The expression that it is a function of."""
        return str(getattr(self, self.function))


AGGREGATES: Final = (
    *("count", "count_distinct", "sum", "avg", "min", "max", "any", "every", "sorted_list"),
)


class AggregateStep(OneInputStep):
    """One row for each group of rows."""

    by: tuple[Column, ...] = Field(
        default=(),
        max_length=MAX_LISTED,
        description="Columns with the same values in all rows of a group; NULL is a value here. "
        "Default: all rows are one group.",
    )
    columns: dict[Column, AggregateColumn] = Field(
        default={},
        max_length=MAX_LISTED,
        description="Columns that are computed for each group, such as `total: {sum: amount}`.",
    )

    @model_validator(mode="after")
    def _has_a_column(self) -> Self:
        if not self.by and not self.columns:
            raise _refuse("the result has no columns", "write `by`, `columns` or both")
        return self


class FilterStep(OneInputStep):
    """The rows for which a condition is true."""

    condition: Expression = Field(
        description="Spark SQL condition. Rows for which it is false or NULL are left out."
    )


class SelectStep(OneInputStep):
    """Some of the columns."""

    columns: Columns | None = Field(
        default=None, description="Columns to keep, in the order of the result."
    )
    except_: Columns | None = Field(
        default=None, alias="except", description="Columns to leave out; all others are kept."
    )

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        given = {"columns": self.columns, "except": self.except_}
        _one_of(given, "`columns` and `except`", "one of the two")
        return self


class RenameStep(OneInputStep):
    """Other names for some columns."""

    columns: dict[Column, Column] = Field(
        min_length=1,
        max_length=MAX_LISTED,
        description="`old: new` lines. Columns that are not named keep their names; two columns "
        "may swap theirs.",
    )


class DerivedColumn(Frozen):
    """A column that an expression computes, with its type."""

    expression: Expression = Field(
        description="Spark SQL expression over the columns of the input."
    )
    type: ColumnType = Field(
        description="Type that the value is cast to. A value that does not fit becomes NULL."
    )


class DeriveStep(OneInputStep):
    """More columns, or other values for columns that exist."""

    columns: dict[
        Column,
        Annotated[
            Annotated[Expression, Tag("expression")]
            | Annotated[DerivedColumn, Tag("expression and type")],
            _shape("expression", "expression and type"),
        ],
    ] = Field(
        min_length=1,
        max_length=MAX_LISTED,
        description="Expressions over the columns of the input, as they were before this step: "
        '`total: "price * quantity"`. A column that exists is replaced at its place, others follow '
        "the last one.",
    )


class DedupeSettings(Frozen):
    """Which one of several rows is kept."""

    keys: tuple[Column, ...] = Field(
        default=(),
        max_length=MAX_LISTED,
        description="Rows with the same values in these columns are duplicates; NULL is a value "
        "here. Default: all columns.",
    )
    keep: Literal["latest", "first"] | None = Field(
        default=None,
        description="`latest` keeps the row with the greatest values of `order`, `first` the one "
        "with the smallest. Required with `keys`.",
    )
    order: tuple[Column, ...] = Field(
        default=(),
        max_length=100,
        description="Columns by whose values duplicates are ordered. NULL comes after all others. "
        "Together with `keys` they have to tell all rows apart: they contain a key of the input, "
        "or are all of its columns.",
    )

    @model_validator(mode="after")
    def _says_what_is_kept(self) -> Self:
        if self.keys and (self.keep is None or not self.order):
            raise _refuse(
                "nothing says which one of several rows is kept",
                "write `keep: latest` and `order: [updated_at, id]`",
            )
        if not self.keys and (self.keep is not None or self.order):
            raise _refuse("rows that are equal in all columns have no order", "write `keys`")
        return self


class DedupeStep(OneInputStep, DedupeSettings):
    """One row of those that are duplicates."""


class CleanseStep(OneInputStep):
    """Tidy values. What is set is done in the order of this table."""

    trim: tuple[Column, ...] = Field(
        default=(),
        max_length=MAX_LISTED,
        description="Columns of text that lose the spaces at both ends.",
    )
    replace: dict[Column, Annotated[dict[str, str], Field(min_length=1, max_length=MAX_LISTED)]] = (
        Field(
            default={},
            max_length=MAX_LISTED,
            description="Values of columns of text that become others: `country: {UK: GB, Holland: "
            "NL}`. Whole values are compared.",
        )
    )
    case: dict[Column, Literal["upper", "lower", "title"]] = Field(
        default={},
        max_length=MAX_LISTED,
        description="Columns of text that become `upper` or `lower` case, or `title`: words begin "
        "with a capital letter.",
    )
    null_if: dict[
        Column, Annotated[tuple[Constant, ...], Field(min_length=1, max_length=MAX_LISTED)]
    ] = Field(
        default={},
        max_length=MAX_LISTED,
        description='Values that become NULL: `country: ["", "n/a"]`.',
    )
    dedupe: DedupeSettings | None = Field(
        default=None, description="At the end: one row of those that are duplicates, as `dedupe`."
    )

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not (self.trim or self.replace or self.case or self.null_if or self.dedupe):
            raise _refuse("it changes nothing", "write for example `trim: [first_name]`")
        return self


class OrderedStep(OneInputStep):
    """What processors have that look at rows before or after."""

    by: tuple[Column, ...] = Field(
        default=(),
        max_length=100,
        description="Columns with the same values in rows that belong together. Default: all rows "
        "belong together, so that every change computes the whole table.",
    )
    order: tuple[
        Annotated[
            Annotated[Column, Tag("ascending")]
            | Annotated[dict[Column, Literal["asc", "desc"]], Tag("with direction")],
            _shape("ascending", "with direction"),
        ],
        ...,
    ] = Field(
        default=(),
        max_length=100,
        description="Columns by which rows that belong together are ordered, `{at: desc}` for the "
        "greatest first. NULL comes before all others, with `desc` after them.",
    )

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """Columns of the order, each with `asc` or `desc`."""
        return tuple(
            item
            for term in self.order
            for item in ([(term, "asc")] if isinstance(term, str) else list(term.items()))
        )


class FillMissingStep(OrderedStep):
    """Values where columns are NULL."""

    last: tuple[Column, ...] = Field(
        default=(),
        max_length=MAX_LISTED,
        description="Columns that take the last value before, in `order` among the rows with the "
        "same `by`. `by` and `order` have to tell all rows apart, as for `dedupe`.",
    )
    values: dict[Column, Constant] = Field(
        default={},
        max_length=MAX_LISTED,
        description="Columns that take this value; for a column of `last`, where no row before "
        "has one.",
    )

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if not self.last and not self.values:
            raise _refuse("nothing is filled", "write `last`, `values` or both")
        if bool(self.last) != bool(self.order):
            fix = "write `order` with `last`, and leave it out without"
            raise _refuse("the last value before needs an `order`, and nothing else does", fix)
        if self.by and not self.last:
            raise _refuse("`by` is for `last`", "remove `by`")
        return self


class PivotStep(OneInputStep):
    """One row for each group, with a column for each value of a column."""

    by: Columns = Field(description="Columns with the same values in all rows of a group.")
    column: Column = Field(description="The column whose values become columns.")
    values: Annotated[
        Annotated[tuple[Constant, ...], Field(min_length=1, max_length=MAX_LISTED), Tag("values")]
        | Annotated[
            dict[Column, Constant],
            Field(min_length=1, max_length=MAX_LISTED),
            Tag("names and values"),
        ],
        _shape("values", "names and values"),
    ] = Field(
        description="The values, as a list, or as `name: value` lines where columns need other "
        "names. They are declared, so that the columns of the table never depend on its rows; "
        "other values are left out."
    )
    value: AggregateColumn = Field(
        description="What stands in the columns, such as `{sum: amount}`. NULL, or 0 for counts, "
        "where a group has no row of the value."
    )


class UnpivotStep(OneInputStep):
    """A row for each of several columns."""

    columns: Annotated[
        Annotated[Columns, Tag("columns")]
        | Annotated[
            dict[Column, Annotated[str, Field(max_length=_MAX_TEXT)]],
            Field(min_length=1, max_length=MAX_LISTED),
            Tag("columns and labels"),
        ],
        _shape("columns", "columns and labels"),
    ] = Field(
        description="The columns, as a list, or as `column: label` lines. Their types become one, "
        "as those of `union`."
    )
    name: Column = Field(description="The new column with the label, by default the column's name.")
    value: Column = Field(description="The new column with the value.")
    missing: Literal["keep", "drop"] = Field(
        default="keep",
        description="`drop` leaves rows out whose value is NULL. Default: `keep`.",
    )


class ExplodeStep(OneInputStep):
    """A row for each element of an array."""

    column: Column = Field(description="The column with the array.")
    into: Column | None = Field(
        default=None,
        description="Name of the column with the element, at the place of the array. Default: the "
        "name of the array.",
    )
    position: Column | None = Field(
        default=None, description="Name of a column with the number of the element, from 1."
    )
    empty: Literal["drop", "keep"] = Field(
        default="drop",
        description="`keep` makes one row without an element of a row whose array is empty or "
        "NULL. Default: `drop`.",
    )


class LookupStep(OneInputStep):
    """Columns of the one row of another input that belongs to a row. Every row is kept."""

    from_: InputName = Field(
        alias="from", description="The input that is looked up: an earlier step or a table."
    )
    on: Annotated[
        Annotated[Columns, Tag("columns of both")]
        | Annotated[dict[Column, Column], Field(min_length=1), Tag("this to looked up")],
        _shape("columns of both", "this to looked up"),
    ] = Field(
        description="Columns that have to be equal: a list where both inputs call them the same, "
        "or `here: there` lines. They contain a key of the input that is looked up, so that no row "
        "is doubled."
    )
    columns: Annotated[
        Annotated[Columns, Tag("columns")]
        | Annotated[
            dict[Column, Column],
            Field(min_length=1, max_length=MAX_LISTED),
            Tag("names and columns"),
        ],
        _shape("columns", "names and columns"),
    ] = Field(
        description="Columns to add, as a list, or as `name: column` lines where they get other "
        "names. NULL where nothing was found."
    )


class WindowColumn(Frozen):
    """A value from the rows around a row: exactly one function."""

    row_number: Literal[True] | None = Field(
        default=None, description="`true`: the number of the row in the order, from 1."
    )
    rank: Literal[True] | None = Field(
        default=None,
        description="`true`: as `row_number`, equal for rows that are equal in the "
        "order, with gaps after them.",
    )
    dense_rank: Literal[True] | None = Field(
        default=None, description="`true`: as `rank` without gaps."
    )
    lag: Expression | None = Field(
        default=None, description="The value of a row before, see `offset`; NULL without one."
    )
    lead: Expression | None = Field(
        default=None, description="The value of a row after, see `offset`; NULL without one."
    )
    first: Expression | None = Field(default=None, description="The value of the first row.")
    last: Expression | None = Field(default=None, description="The value of the last row.")
    count: Expression | None = Field(
        default=None, description="How many rows of the frame have a value, or `*` for its rows."
    )
    sum: Expression | None = Field(default=None, description="The sum over the frame.")
    avg: Expression | None = Field(default=None, description="The mean over the frame.")
    min: Expression | None = Field(default=None, description="The smallest value of the frame.")
    max: Expression | None = Field(default=None, description="The largest value of the frame.")
    offset: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="How many rows before or after, for `lag` and `lead`. Default: 1.",
    )
    rows: int | Literal["all", "running"] | None = Field(
        default=None,
        description="The frame of `count`, `sum`, `avg`, `min` and `max`: `all` rows that belong "
        "together, `running` for those up to this one, or a number: this row and so many before "
        "it. Default: `all`.",
    )

    @model_validator(mode="after")
    def _has_one_function(self) -> Self:
        functions = {name: getattr(self, name) for name in WINDOW_FUNCTIONS}
        _one_of(functions, "the functions", "one of them, such as `{lag: amount}`")
        if self.offset is not None and self.function not in {"lag", "lead"}:
            raise _refuse("`offset` is for `lag` and `lead`", "remove `offset`")
        if self.rows is not None and self.function not in FRAMED:
            raise _refuse(f"`rows` is for {', '.join(FRAMED)}", "remove `rows`")
        if isinstance(self.rows, int) and not 0 <= self.rows <= 1_000_000:
            raise _refuse("this number of rows is out of range", "write 0 to 1,000,000")
        return self

    @property
    def function(self) -> str:
        """The name of its function."""
        return next(name for name in WINDOW_FUNCTIONS if getattr(self, name) is not None)

    @property
    def needs_order(self) -> bool:
        """Whether its value depends on the order of the rows."""
        return self.function not in FRAMED or self.rows not in {None, "all"}

    @property
    def argument(self) -> str | None:
        """The expression that it is a function of; None for those of the order alone."""
        value = getattr(self, self.function)
        return None if value is True else str(value)


FRAMED: Final = ("count", "sum", "avg", "min", "max")
WINDOW_FUNCTIONS: Final = (
    *("row_number", "rank", "dense_rank", "lag", "lead", "first", "last"),
    *FRAMED,
)


class WindowStep(OrderedStep):
    """Columns computed from the rows around each row. Every row is kept."""

    columns: dict[Column, WindowColumn] = Field(
        min_length=1,
        max_length=MAX_LISTED,
        description="New columns, such as `place: {row_number: true}` or `before: {lag: amount}`. "
        "Where the result depends on the order, `by` and `order` have to tell all rows apart, as "
        "for `dedupe`.",
    )

    @model_validator(mode="after")
    def _has_an_order_where_it_counts(self) -> Self:
        needed = [name for name, column in self.columns.items() if column.needs_order]
        if needed and not self.order:
            raise _refuse(f"{shown(needed[0])} depends on an order", "write `order: [at, id]`")
        if self.order and not needed:
            raise _refuse(
                "no column depends on the order", "remove `order`, or set `rows: running`"
            )
        return self


Processor: TypeAlias = (
    JoinStep | UnionStep | AggregateStep | FilterStep | SelectStep | RenameStep | DeriveStep
    | CleanseStep | DedupeStep | FillMissingStep | PivotStep | UnpivotStep | ExplodeStep
    | LookupStep | WindowStep
)  # fmt: skip


class FlowStep(Frozen):
    """One processor by its name, with its settings."""

    join: JoinStep | None = Field(default=None, description="Rows of two inputs side by side.")
    union: UnionStep | None = Field(
        default=None, description="Rows of several inputs below each other."
    )
    aggregate: AggregateStep | None = Field(
        default=None, description="One row for each group of rows."
    )
    filter: (
        Annotated[
            Annotated[FilterStep, Tag("settings")] | Annotated[Expression, Tag("condition")],
            _shape("condition", "settings"),
        ]
        | None
    ) = Field(
        default=None,
        description='Rows for which a condition is true. `filter: "amount > 0"` is short for '
        "`filter: {condition: …}`.",
    )
    select: (
        Annotated[
            Annotated[SelectStep, Tag("settings")] | Annotated[Columns, Tag("columns")],
            _shape("columns", "settings"),
        ]
        | None
    ) = Field(
        default=None,
        description="Some of the columns. `select: [a, b]` is short for `select: {columns: …}`.",
    )
    rename: RenameStep | None = Field(default=None, description="Other names for columns.")
    derive: DeriveStep | None = Field(default=None, description="Columns by expressions.")
    cleanse: CleanseStep | None = Field(default=None, description="Tidy values.")
    dedupe: DedupeStep | None = Field(
        default=None, description="One row of those that are duplicates."
    )
    fill_missing: FillMissingStep | None = Field(
        default=None, description="Values where columns are NULL."
    )
    pivot: PivotStep | None = Field(
        default=None, description="Columns from the values of a column."
    )
    unpivot: UnpivotStep | None = Field(default=None, description="Rows from columns.")
    explode: ExplodeStep | None = Field(
        default=None, description="A row for each element of an array."
    )
    lookup: LookupStep | None = Field(
        default=None, description="Columns from the one row of another input by its key."
    )
    window: WindowStep | None = Field(
        default=None, description="Columns from the rows around each row."
    )

    @model_validator(mode="before")
    @classmethod
    def _without_incremental_filter(cls, value: Any) -> Any:
        if isinstance(value, dict) and "incremental_filter" in value:
            raise _refuse(
                _NOT_INCREMENTAL,
                "write `filter`: each step shows what the whole flow returns",
                "polynya_incremental_filter",
            )
        return value

    @model_validator(mode="after")
    def _has_one_processor(self) -> Self:
        given = {name: getattr(self, name) for name in type(self).model_fields}
        _one_of(given, "the processors", 'each as an item of its own: `- {filter: "amount > 0"}`')
        return self

    @property
    def processor(self) -> str:
        """The name of its processor."""
        return next(name for name in type(self).model_fields if getattr(self, name) is not None)

    @property
    def settings(self) -> Processor:
        """The settings of its processor, the short forms written out."""
        value: Any = getattr(self, self.processor)
        if isinstance(value, str):
            return FilterStep(condition=value)
        return SelectStep(columns=value) if isinstance(value, tuple) else value


Flow: TypeAlias = Annotated[tuple[FlowStep, ...], Field(min_length=1, max_length=MAX_STEPS)]
