"""Errors of derived datasets (TRF): one SELECT over the tables of other tasks."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError

STATEMENT_NOT_SQL: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-001",
    title="not valid SQL",
    message="not valid SQL: {problem}",
    page="The statement of a derived dataset cannot be parsed as Spark SQL.",
)
NOT_ONE_SELECT: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-002",
    title="not exactly one SELECT",
    message="the statement has to be one SELECT, and this is {found}",
    fix="write one SELECT; WITH and UNION are possible",
    page="A derived dataset is the result of one query. It changes nothing and has no second "
    "statement.",
)
STATEMENT_TOO_LARGE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-003",
    title="too long or too deep",
    message="the statement has {problem}",
    fix="split it into several derived datasets",
    page="A statement has at most 50,000 characters, 5,000 words and symbols, and 64 levels of "
    "brackets, subqueries and operators.",
)
UNKNOWN_TABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-004",
    title="unknown table",
    message="no input is called {name}",
    page="A statement reads datasets of the tasks in `from`: `task.dataset`, or `dataset` where "
    "one task only has it. `dataset__history`, `dataset__changes` and `dataset__current_stored` "
    "are the other views of a dataset.",
)
TABLE_NOT_ALLOWED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-005",
    title="not a table of an input",
    message="a statement cannot read {what}",
    fix="read a dataset of a task in `from`",
    page="Paths in the place of a table, functions that give tables, VALUES, samples and "
    "earlier versions of a table cannot be read: only datasets by their names.",
)
UNKNOWN_COLUMN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-006",
    title="unknown column",
    message="no column is called {name}",
    page="No table or subquery of this part of the statement has a column of that name. "
    "`polynya validate` finds it where files tell all columns of the tables, or leave this one "
    "out; `polynya plan` knows the columns that the tables have.",
)
AMBIGUOUS_NAME: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-007",
    title="a name has several meanings",
    message="{name} may be one of {meanings}",
    fix="write the table before it: {example}",
    page="Several tables of this part of the statement have a column of that name, or several "
    "tasks have a dataset of that name.",
)
FUNCTION_NOT_IN_STATEMENTS: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-008",
    title="function not allowed in a statement",
    message="function {name} is not allowed",
    page="Statements call Spark's own functions that compute values from values, aggregates, "
    "window functions, and `explode` and its relatives. Not allowed are functions that reach "
    "outside, such as `reflect`, `java_method` and `input_file_name`, and functions of users.",
)
OUTPUT_NAMES: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-009",
    title="a column of the result has no name, or that of another one",
    message="{problem}",
    fix="give it a name of its own with AS",
    page="The columns of the result become columns of a table, so each has a name of its own. "
    "Upper and lower case make no difference.",
)
NOT_GROUPED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-010",
    title="a column is neither grouped nor aggregated",
    message="{name} is neither in GROUP BY nor in an aggregate",
    fix="add it to GROUP BY, or use an aggregate such as max({name})",
    page="A query with GROUP BY or an aggregate gives one row for each group, so each value of "
    "it depends on the columns of GROUP BY, or is an aggregate.",
)
CLAUSE_NOT_ALLOWED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-011",
    title="not allowed in a statement",
    message="{what} cannot be used here",
    page="Hints, parameters, TRANSFORM, QUALIFY, SORT BY, DISTRIBUTE BY, CLUSTER BY and recursive "
    "WITH are not part of statements. Both sides of a UNION have the same number of columns.",
)
