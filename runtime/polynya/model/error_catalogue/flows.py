"""Errors of flows (TRF-040 to -069): processors of a transform that become one query."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError

FLOW_COLUMN_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-040",
    title="a step of a flow names a column that its input does not have",
    message="{step} names {column}, which {source} does not have",
    page="A step has the columns that the steps before it made. `polynya flow show` lists the "
    "columns of every step. Upper and lower case make no difference in names.",
)
FLOW_COLUMN_TWICE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-041",
    title="a step of a flow would have two columns of one name",
    message="{step} would have two columns {column}",
    fix="give one of them another name",
    page="Two columns of one step differ in more than upper and lower case. `rename` or `select` "
    "before the step, and `prefix` of a join, keep names apart.",
)
FLOW_INPUT_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-042",
    title="a step of a flow reads something unknown",
    message="{step} reads {name}, which is neither an earlier step nor a table of `from`",
    page="A step reads the one before it, an earlier step by its `as`, or a table of the tasks in "
    "`from`: `schema.table`, or `table` where only one of them has this name.",
)
FLOW_STEP_NAME_TAKEN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-043",
    title="a step of a flow has the name of something else",
    message="{step} is called {name}, which is the name of {other}",
    fix="choose another name under `as`",
    page="Steps and the tables that a flow reads have different names, so that it is plain which "
    "one a step means.",
)
FLOW_TYPES_DIFFER: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-044",
    title="columns of different types cannot become one",
    message="{step} joins {one} with {other}, and no type holds the values of both",
    fix="cast one of them before, with `derive: {{columns: {{name: {{expression: …, type: …}}}}}}`",
    page="Columns that a step compares or puts below each other have the same type, or one of "
    "their types holds every value of both, such as `bigint` for `int` and `bigint`. `bigint` and "
    "`double` are not such a pair: large numbers would change. Spark would cast silently here.",
)
FLOW_TYPE_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-045",
    title="a column has a type that a step of a flow cannot take",
    message="{step} needs {needed}, and {what} is {type}",
    fix="use another column, or cast it before with `derive`",
    page="The message says which kind of type the step needs. Maps, for example, have no order "
    "and are never equal, so they are neither grouped nor ordered.",
)
FLOW_ORDER_HAS_TIES: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-046",
    title="the order of a step of a flow leaves open which row comes first",
    message="rows of {source} may be equal in all of {columns}, so {step} could choose any of them",
    page="Which row comes first has to follow from the data alone: otherwise two runs over the "
    "same rows give different tables. The columns together have to contain a key of the input, or "
    "be all of its columns. A table has its keys, `aggregate`, `pivot` and `dedupe` make one, and "
    "`union` keeps one with `source`.",
)
FLOW_LOOKUP_NOT_BY_KEY: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-047",
    title="a lookup does not use a key",
    message="{step} finds rows of {source} by {columns}, which may be several for one row",
    page="A lookup adds columns of exactly one row or none, so the columns of `on` contain a key "
    "of the input that is looked up. For several rows use `join`, which repeats the row for each.",
)
INCREMENTAL_FILTER_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-048",
    title="an incremental filter cannot be exact",
    page="An incremental filter would leave rows out of an incremental step that a full one "
    "takes. The table would then depend on which steps ran when, and no longer equal its query. "
    "`filter` applies to every step. A step of a transform reads no more than what can have "
    "changed, with no filter of the user.",
)
FLOW_TOO_LARGE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-049",
    title="a flow is too large",
    message="the flow has more than {limit}",
    fix="split it into two tables, the second over the first",
    page="The limits are 100 steps, 5,000 columns in one step, 1,000,000 characters of SQL and "
    "1,000 readings of tables, where a step that is read twice counts twice.",
)
FLOW_FUNCTION_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-050",
    title="a function cannot be computed in a flow",
    message="{step} cannot compute {function}: {reason}",
    page="Functions of Polynya take arguments of every type and are rewritten for the type that "
    "they get. In a flow this type is known for columns of tables, literals, casts and simple "
    "expressions of them. Functions over the message or the file that a record came in, and those "
    "whose pattern only Spark can check, are for records, not for tables.",
)
FLOW_STEP_UNUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-051",
    title="a step of a flow has no effect",
    message="no later step reads {step}",
    fix="name it as the `input` of a later step, or remove it",
    page="The result of a flow is its last step. Every other step is read by one that follows: by "
    "the next one, unless that one names another input, or by its `as`.",
)
FLOW_VALUE_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-052",
    title="a value does not fit its column",
    message="{step} compares or fills {column} of type {type} with {value}, which does not fit it",
    fix="write a value of that type; dates and times as text, such as `2026-11-29`",
    page="Values in a flow have the type of their column: text in quotes, numbers, `true` or "
    "`false`. Spark would make NULL of a value that does not fit.",
)
FLOW_SIDE_MISSING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-053",
    title="a column in the condition of a join has no side",
    message="{column} in the condition of {step} does not say which input it is of",
    fix="write `left.{name}` or `right.{name}`",
    page="In `condition` of a join every column begins with `left.` or `right.`.",
)
FLOW_RESULT_NAME: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-054",
    title="a column of the result of a flow has a name that a table cannot have",
    message="{step} is the result, and {problem}",
    fix="give it another name with `rename`, or leave it out with `select: {{except: …}}`",
    page="A name has at most 255 characters, also with the `prefix` of a join, and does not begin "
    "with `hdr__`: the columns that Polynya adds begin so.",
)
FLOW_TABLE_EMPTY: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-055",
    title="a table of a flow has no columns yet",
    message="{table} has no columns yet",
    fix="run its task first: `polynya run --once`",
    page="The columns of a table come from its first records. Until then a flow over it cannot be "
    "checked or shown; a run of the transform waits for the table.",
)
