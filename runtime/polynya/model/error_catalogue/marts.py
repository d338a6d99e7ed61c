"""Errors of data marts (TRF-100 to 119)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError

MART_TABLE_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-100",
    title="a data mart names a table that it does not have",
    message="no table of the tasks in `from` is called {table}",
    page="Relationships, dimensions, facts and milestones name tables as queries do: "
    "`schema.table`, or `table` where only one task has this name. A table that its task finds by "
    "itself is named with its schema.",
)
DIMENSION_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-101",
    title="a fact refers to a dimension that its mart does not have",
    message="the mart has no dimension called {dimension}",
    page="`dimensions` of a fact names dimensions of the same mart.",
)
RELATIONSHIP_MISSING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-102",
    title="no relationship leads from one table to another",
    message="no relationships lead from {child} to {parent}",
    page="A fact finds its dimensions, and a dimension the columns of related tables, along the "
    "`relationships` of the mart: from a table with a foreign key to the table of the key, and on "
    "from there. `via` names relationships that start at the table that the one before leads to.",
)
RELATIONSHIP_UNCLEAR: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-103",
    title="several ways lead from one table to another",
    message="{ways} lead from {child} to {parent}: {paths}",
    page="Name the relationships of one way under `via`, in order. Relationships from one table to "
    "the same other need a `name` each.",
)
RELATIONSHIP_NOT_TO_KEY: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-104",
    title="a relationship does not lead to the key of a table",
    message="the columns of {table} in `on` are not its key ({keys})",
    fix="name the foreign key of each column of the key, as `foreign: key`",
    page="A relationship leads to one row. Otherwise a join along it would repeat rows.",
)
FACT_TIME_MISSING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-105",
    title="a fact has no time by which it finds a dimension",
    message="the dimension {dimension} needs a time of the fact",
    fix="add `time` to the fact, or `at` to this dimension",
    page="A dimension of type 2 has a row for each version, and a dimension of dates one for each "
    "day. Which one belongs to a fact depends on its time.",
)
MART_HISTORY_MISSING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-106",
    title="a mart needs the history of a table that keeps none",
    message="{what} needs all versions of {table}, which keeps no history",
    fix="set `history: true` for that table in its task",
    page="Dimensions of type 2 and periodic snapshots are made of the versions of a table, and a "
    "dimension of type 2 also of those of the related tables whose columns it has.",
)
MART_NAME_TAKEN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-107",
    title="two columns, relationships or tables of a mart have the same name",
    message="{what} {name} exists already",
    page="Names of tables differ within a mart, those of columns within a table, and those of "
    "relationships among those from the same table. Upper and lower case are the same. A dimension "
    "has its key as a column, and with type 2 `valid_from`, `valid_to` and `is_current`; a "
    "periodic snapshot has `period_start` and `period_end`.",
)
MART_COLUMN_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-108",
    title="a mart names a column or milestone that it does not have",
    message="{what} {name} does not exist",
    page="`unknown` of a dimension gives values to its own columns, `lags` of a fact name its "
    "milestones.",
)
MART_EXPRESSION_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-109",
    title="an expression of a mart calls a function that only mapped columns have",
    message="the function {function} does not exist in Spark",
    fix="write it with functions of Spark",
    page="Expressions of a data mart are Spark's, over the columns of one table. The functions "
    "that Polynya adds for mapped columns do not exist there.",
)
MART_NOT_PROPOSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-110",
    title="no data mart can be proposed for these tables",
    message="none of {count} tables refers to a key of another, as far as names, types and values "
    "tell",
    state="nothing was written",
    fix="`polynya mart propose --all` shows what was looked at; run the project first if its "
    "tables are empty, or write the mart by hand",
    page="A relationship is proposed where a column has the name of a key or of its table, a type "
    "that compares with it, and values that the key has. Columns without such a name are `weak` at "
    "best: the ids of two tables are often the same numbers.",
)
