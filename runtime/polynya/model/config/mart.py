"""A data mart as written in `tasks/*.yml`: relationships, dimensions and facts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.derived import DerivedTable, ReadingTask
from polynya.model.config.fields import Column, Expression, Frozen, Name
from polynya.model.config.flow import Constant, InputName

#: Days of a date dimension: 400 years.
_MOST_DAYS: Final = 146_097
_Listed: TypeAlias = Annotated[tuple[Column, ...], Field(min_length=1, max_length=32)]


def _refuse(message: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


#: Tells the short form of a setting from its mapping. No mapping has a key with the name of a tag.
_SHORT_FORM: Final = Discriminator(
    lambda value: "mapping" if isinstance(value, dict | BaseModel) else "text"
)


def _by(key: str, tag: Callable[[Any], str]) -> Discriminator:
    """Tell models by the value of a key, which may be absent."""
    return Discriminator(
        lambda value: tag(value.get(key) if isinstance(value, dict) else getattr(value, key, None))
    )


class Relationship(Frozen):
    """Rows of one table belong to a row of another: the foreign key of `from` is a key of `to`."""

    name: Name | None = Field(
        default=None,
        description="Name for `via`. Default: the name of the table of `to` without its schema.",
    )
    from_: InputName = Field(alias="from", description="The table that has the foreign key.")
    to: InputName = Field(description="The table that the key belongs to.")
    on: dict[Column, Column] = Field(
        min_length=1,
        max_length=32,
        description="Columns of `from`, each with the column of `to` that it equals. Those of `to` "
        "are its key.",
    )


class MartColumn(Frozen):
    """A column of a dimension or fact: of its own table, of a related one, or an expression."""

    name: Column = Field(description="Name of the column.")
    table: InputName | None = Field(
        default=None,
        description="The table that has it, which relationships lead to. Default: the own table.",
    )
    column: Column | None = Field(
        default=None, description="Its name in that table. Default: `name`."
    )
    expression: Expression | None = Field(
        default=None,
        description="Instead of `column`: an expression over columns of the own table.",
    )
    via: tuple[Name, ...] = Field(
        default=(),
        max_length=16,
        description="Names of the relationships to `table`, in order. Needed only where several "
        "ways lead there.",
    )

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if self.expression is not None and (self.table or self.column or self.via):
            raise _refuse(
                "an `expression` reads columns of the own table only",
                "remove `table`, `column` and `via`, or the `expression`",
            )
        return self


MartColumns: TypeAlias = Annotated[
    tuple[
        Annotated[
            Annotated[Column, Tag("text")] | Annotated[MartColumn, Tag("mapping")],
            _SHORT_FORM,
        ],
        ...,
    ],
    Field(max_length=2000),
]


class MartTable(DerivedTable):
    """What dimensions and facts have in common."""

    table: InputName = Field(description="The table that it has a row of: `schema.table`.")
    keys: _Listed = Field(description="Columns of that table that tell its rows apart.")
    columns: MartColumns = Field(
        default=(),
        description="Further columns: names of columns of the table, or mappings. A column of a "
        "related table is looked up along the relationships.",
    )
    where: Expression | None = Field(
        default=None,
        description="Condition over columns of the table; other rows are left out.",
    )


class TableDimension(MartTable):
    """A dimension: one row for each member (type 1), or for each version of it (type 2)."""

    type: Literal[1, 2] = Field(
        default=1,
        description="`1`: the present values. `2`: a row for each version of the columns, with "
        "`valid_from`, `valid_to` and `is_current`; the table has `history: true`. Default: 1.",
    )
    key: Column | None = Field(
        default=None, description="Name of the surrogate key. Default: `<name>_key`."
    )
    unknown: dict[Column, Constant] = Field(
        default_factory=dict,
        max_length=2000,
        description="Values of the unknown member by column. Default: NULL.",
    )
    before_first: Literal["first_version", "unknown"] = Field(
        default="first_version",
        description="Of type 2: what a fact gets that is older than the first version known. "
        "`first_version`: this version. `unknown`: the unknown member.",
    )

    @model_validator(mode="after")
    def _versions_are_whole(self) -> Self:
        if self.type == 2 and self.delete_mode == "soft":
            raise _refuse(
                "a dimension of type 2 cannot keep deleted versions: they would overlap others",
                "remove `delete_mode`; `history: true` keeps what the table has shown",
            )
        return self


class DateDimension(DerivedTable):
    """A dimension of days, with a key such as 20261231."""

    type: Literal["date"] = Field(description="`date`.")
    first: date = Field(description="The first day, such as `2020-01-01`.")
    last: date = Field(description="The last day. At most 400 years.")
    key: Column | None = Field(default=None, description="Name of the key. Default: `<name>_key`.")

    @model_validator(mode="after")
    def _has_days(self) -> Self:
        days = (self.last - self.first).days
        if not 0 <= days < _MOST_DAYS:
            raise _refuse(
                f"from {self.first} to {self.last} is not a range of days of at most 400 years",
                "write the earlier day as `first`",
            )
        return self


#: A dimension of any type.
AnyDimension: TypeAlias = Annotated[
    Annotated[TableDimension, Tag("members")] | Annotated[DateDimension, Tag("days")],
    _by("type", lambda kind: "days" if kind == "date" else "members"),
]


class DimensionRole(Frozen):
    """A dimension that a fact refers to, in one role."""

    dimension: Name = Field(description="Name of a dimension of this mart.")
    as_: Name | None = Field(
        default=None,
        alias="as",
        description="The role: the column of the fact is `<as>_key`. Default: the name of the "
        "dimension.",
    )
    via: tuple[Name, ...] = Field(
        default=(),
        max_length=16,
        description="Names of the relationships from the table of the fact to that of the "
        "dimension, in order. Needed only where several ways lead there.",
    )
    at: Expression | None = Field(
        default=None,
        description="The time of this role, as `time` of the fact: its day for a dimension of "
        "dates, the version that was valid then for type 2. Default: `time` of the fact.",
    )


_Roles: TypeAlias = Annotated[
    tuple[
        Annotated[
            Annotated[Name, Tag("text")] | Annotated[DimensionRole, Tag("mapping")],
            _SHORT_FORM,
        ],
        ...,
    ],
    Field(max_length=200),
]


class FactTable(MartTable):
    """What facts of every kind have."""

    dimensions: _Roles = Field(
        default=(), description="Dimensions that it refers to: names, or mappings for roles."
    )
    measures: dict[Column, Expression] = Field(
        default_factory=dict,
        max_length=2000,
        description="Measures: names with an expression over columns of the table.",
    )


class TransactionFact(FactTable):
    """One row for each row of a table."""

    kind: Literal["transaction"] = Field(
        default="transaction", description="`transaction`, the default."
    )
    time: Expression | None = Field(
        default=None,
        description="When it happened: a column of the table, or an expression over its columns. "
        "Needed for dimensions of type 2 and of dates that have no `at`.",
    )


class PeriodicSnapshotFact(FactTable):
    """The rows of a table with history as they were at the end of each period."""

    kind: Literal["periodic_snapshot"] = Field(description="`periodic_snapshot`.")
    period: Literal["day", "week", "month", "quarter", "year"] = Field(
        description="The period, in UTC; weeks begin on Mondays. Periods begin with the first "
        "version of the table and end with the one in which the table changed last."
    )


class Milestone(Frozen):
    """A time that rows of a related table tell."""

    table: InputName = Field(description="A table with a relationship to that of the fact.")
    column: Column = Field(description="Its column with the time.")
    pick: Literal["first", "last"] = Field(
        default="first", description="Which of several times counts. Default: `first`."
    )
    via: Name | None = Field(
        default=None,
        description="Name of the relationship, where the table has several to that of the fact.",
    )


class AccumulatingSnapshotFact(FactTable):
    """One row for each row of a table, with the times at which it reached its milestones."""

    kind: Literal["accumulating_snapshot"] = Field(description="`accumulating_snapshot`.")
    time: Expression | None = Field(
        default=None, description="As for `transaction`; may be the name of a milestone."
    )
    milestones: dict[
        Column,
        Annotated[
            Annotated[Expression, Tag("text")] | Annotated[Milestone, Tag("mapping")],
            _SHORT_FORM,
        ],
    ] = Field(
        min_length=1,
        max_length=100,
        description="Times by name: an expression over columns of the table, or a mapping for the "
        "first or last time in a related table. NULL until it is reached.",
    )
    lags: dict[Column, Annotated[tuple[Column, ...], Field(min_length=2, max_length=2)]] = Field(
        default_factory=dict,
        max_length=1000,
        description="Days between two milestones, by name: `days_to_ship: [ordered, shipped]`.",
    )


#: A fact of any kind.
AnyFact: TypeAlias = Annotated[
    Annotated[TransactionFact, Tag("transaction")]
    | Annotated[PeriodicSnapshotFact, Tag("periodic_snapshot")]
    | Annotated[AccumulatingSnapshotFact, Tag("accumulating_snapshot")],
    _by(
        "kind",
        lambda kind: (
            kind if kind in {"periodic_snapshot", "accumulating_snapshot"} else "transaction"
        ),
    ),
]


class DataMart(ReadingTask):
    """A star schema over the tables of other tasks: dimensions, and facts that refer to them."""

    kind: Literal["data_mart"] = Field(description="Kind of the task.")
    relationships: tuple[Relationship, ...] = Field(
        default=(), max_length=1000, description="Which rows belong to which."
    )
    dimensions: tuple[AnyDimension, ...] = Field(
        min_length=1, max_length=500, description="The dimensions."
    )
    facts: tuple[AnyFact, ...] = Field(default=(), max_length=500, description="The facts.")
