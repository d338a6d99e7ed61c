"""Errors of expressions (EXP), of the functions in them (FUN) and of mapped columns (MAP)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError

_NOT_USED: Final = "nothing was read or written with this expression"
_NOT_COPIED: Final = "nothing of this batch was copied; its files stay where they are"
_NOT_READ: Final = "nothing was read"

EXPRESSION_NOT_SQL: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-EXP-001",
    title="not valid SQL",
    state=_NOT_USED,
    page="The expression cannot be parsed as Spark SQL.",
)
NOT_ONE_EXPRESSION: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-EXP-002",
    title="not exactly one expression",
    state=_NOT_USED,
    page="A setting takes one expression: no `;`, no second statement, not empty.",
)
QUERY_IN_EXPRESSION: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-EXP-003",
    title="sub-query or table",
    state=_NOT_USED,
    page="An expression sees one event and nothing else: no SELECT, no table, no file path.",
)
FUNCTION_NOT_ALLOWED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-EXP-004",
    title="function not allowed",
    state=_NOT_USED,
    page="Only functions that compute one value from one row, the same on every run, are "
    "allowed. Not allowed are, for example, `reflect`, `current_timestamp`, `rand`, "
    "aggregates and `explode`. The reference page of functions lists all that are.",
)
NOT_ALLOWED_IN_EXPRESSION: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-EXP-005",
    title="not allowed in an expression",
    state=_NOT_USED,
    page="Windows, lambdas, parameters, `*`, aliases and similar are not allowed in an expression.",
)
EXPRESSION_TOO_LARGE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-EXP-006",
    title="too long or too deep",
    state=_NOT_USED,
    page="An expression has at most 4,000 characters, 1,000 words and symbols, and 32 levels.",
)
COMMENT_IN_EXPRESSION: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-EXP-007",
    title="comment or hint",
    state=_NOT_USED,
    page="Comments and hints are not allowed inside an expression; write YAML comments instead.",
)
INVALID_ARRAY_PATH: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-EXP-008",
    title="`[]` is not part of an array path",
    state=_NOT_USED,
    page="`items[].sku` is the field of each element of an array: `[]` follows names that are "
    "separated by dots, and `ordinal(items[])` takes such a path and nothing after it. For one "
    "element write its index, `items[0].sku`.",
)
WRONG_ARGUMENT_COUNT: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-FUN-001",
    title="wrong number of arguments",
    state=_NOT_USED,
    page="An expression calls a function of Polynya with too few or too many arguments. "
    "`polynya functions NAME` shows its signature and examples.",
)
ARGUMENT_NOT_LITERAL: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-FUN-002",
    title="not a literal",
    state=_NOT_USED,
    fix="write a text in quotes, a number, true or false there",
    page="Patterns, formats, delimiters, names and switches of a function are part of the "
    "configuration, so they cannot come from a column. The signature has these parameters in "
    "quotes.",
)
FUNCTION_NOT_COMPUTABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-FUN-003",
    title="a function cannot be computed here",
    state=_NOT_USED,
    page="The function is known, but an expression cannot compute it: it depends "
    "on what arrived before (`is_duplicate`), on a list that changes (`top_private_domain`), or "
    "on a time that is only known for landed messages (`get_processing_time`). Its fix says what "
    "to do instead.",
)
TWO_ARRAYS_MAKE_ROWS: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-MAP-001",
    title="two arrays make rows",
    message="`{path}` makes rows of another array than `{other}` at {place}",
    state=_NOT_READ,
    fix="make rows of one of the two only: keep the other as an array, or read the files by a "
    "second dataset",
    page="A mapping makes a row of each element of one array, and of the arrays in its elements "
    "(`orders[]` with `orders[].lines[]`). Two unrelated arrays would give all pairs of their "
    "elements. The message names both places.",
)
NO_LIST_OF_COLUMNS: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-MAP-002",
    title="`[]` without a list of columns",
    message="`{path}` makes rows of elements, but the dataset has no list of `columns`",
    state=_NOT_READ,
    fix="write `columns` as a list of `{{name: …, expression: …}}`, or use `exists` for a "
    "condition over all elements",
    page="Elements become rows only if `columns` is a list, which names the fields of each "
    "element. A condition over all elements of an array is `exists(items, …)`.",
)
CONTRADICTING_COLUMNS: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-MAP-003",
    title="the list of columns contradicts itself",
    page="Two columns have the same name, the ordinals of the key are not 1, 2, 3 …, or both "
    "`keys` and columns with `key` are set. Upper and lower case make no difference in names.",
)
MAPPING_NOT_POSSIBLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-MAP-004",
    title="columns cannot be mapped here",
    page="Full extracts are compared column by column, and a list needs files whose columns have "
    "names. In a capture (Debezium, DMS, Replicate) key columns can only be renamed, since "
    "old keys and deletes refer to them, and elements of an array become rows in append-only "
    "tables only: they would all have the key of their record.",
)
EXPRESSION_NOT_COMPUTABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-MAP-005",
    title="an expression cannot be computed",
    message="cannot compute the expression for the columns of the records: {reason}",
    state=_NOT_COPIED,
    fix="change the expression; `to_string`, `to_double` and similar functions take every type",
    page="A function of Spark does not take the type that a column has, or the expression has a "
    "type that no table can have, such as an interval. The value of a record is not the cause: "
    "that gives NULL. After the change the next run continues. Functions of Polynya take every "
    "type.",
)
MAPPED_NAME_TAKEN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-MAP-006",
    title="two columns get one name",
    message="`nested: expand` makes two columns {column}",
    state=_NOT_COPIED,
    fix="name one of the two in the list of `columns`",
    page="`nested: expand` makes the column `a_b` of the field `b` of `a`, and a column "
    "of that name exists already. Mapped fields are not expanded.",
)
SOURCE_KEY_NOT_MAPPED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-MAP-007",
    title="a key of the source is not in the table",
    message="the key of the source has the column {column}, which the table would not have",
    state=_NOT_COPIED,
    fix="map {column} by its plain name, and give the other column another name",
    page="The source names the columns of its key, and a mapping leaves one of them out or gives "
    "its name to something else. Map the column of the key by its plain name, "
    "`{name: user_id, expression: id}`.",
)
REPLACEMENT_NOT_POSSIBLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-MAP-008",
    title="elements cannot be replaced",
    state=_NOT_READ,
    page="With `replace_elements` a newer record deletes the elements that it lacks. It needs a "
    "key column of the record and one of the element, and conditions over whole records: a record "
    "counts or does not count. Settings that keep earlier values are not possible with it.",
)
