"""Errors of transforms (TRF): tables that queries keep over the tables of other tasks."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, OperationError

_NOT_READ: Final = "nothing was read"
_RESULT_KEPT: Final = "the table keeps its last result; other tables continue"

TRANSFORM_INPUT_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-070",
    title="a transform reads a task that has no tables",
    message="no task with tables is called {task}",
    fix="write the name of a task that has tables, or add one",
    page="`from` of a transform or a data mart names tasks of kind `storage`, "
    "`streaming_transform`, `transform`, `data_mart` or `registered` of the same project.",
)
TRANSFORM_CYCLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-071",
    title="transforms read each other in a circle",
    message="the transform reads its own result: {path}",
    fix="take one of these tasks out of `from`",
    page="A transform may read the tables of other transforms, but not, through them, its own. "
    "The message has the circle.",
)
QUERY_FILE_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-072",
    title="the file of a query cannot be read",
    page="`sql` of a transform is either the text of a query or the name of a file of the "
    "project's folder `sql`, such as `sql/orders.sql`. Only these files are part of the project, "
    "so only they reach the configuration bucket.",
)
QUERY_REFUSED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-073",
    title="the query of a transform is not answered",
    message="the query is not answered: {reason}",
    state=_RESULT_KEPT,
    page="Spark, or the check of its plan, refuses the query. A query is one `SELECT` over tables "
    "of the tasks in `from`. It calls functions of Spark that only compute, and it names no file "
    "and no other table. `polynya plan` asks Spark about queries that are new or edited.",
)
RESULT_KEYS_WRONG: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-074",
    title="rows of a query cannot be told apart by its keys",
    message="{problem}",
    state=_RESULT_KEPT,
    fix="name columns under `keys` that tell the rows apart, or change the query",
    page="`keys` of a derived table name columns of its query that are never NULL and that no two "
    "rows share. Otherwise the query's rows have no identity, and the table could not show all of "
    "them. `polynya validate` and `polynya plan` find keys that the query lacks.",
)
RESULT_TYPE_REFUSED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-075",
    title="a query has a column that no table can hold",
    message="column {column} has type {type}, which no table can hold",
    state=_RESULT_KEPT,
    fix="cast the column in the query",
    page="Tables hold the types of the page of data types. A query may also return an interval, a "
    "time without a date, a variant or only NULLs: `CAST` gives such a column a type of a table. "
    "`polynya plan` finds it before the step.",
)
QUERY_INPUT_UNKNOWN: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-076",
    title="a query reads a table that its transform does not have",
    message="{reader} reads {table}, which none of the tasks in `from` has",
    state=_RESULT_KEPT,
    page="A query names the tables of the tasks in `from` as other queries do: `schema.table`, or "
    "`table` where only one of them has this name; `table__history` is the History view of a table "
    "that keeps history. Views of Changes are not among its inputs, since their rows go when they "
    "are applied or expire, nor are views of stored rows, which show the state of the last apply.",
)
COLUMN_CHANGED_TYPE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-077",
    title="a column of a query has another type than the table",
    message="column {column} is {now} in the query and {before} in the table",
    state=_RESULT_KEPT,
    fix="cast the column in the query to the type of the table, give it another name, or recreate "
    "the table with `polynya dataset recreate`",
    page="A column of a derived table gets a wider type in place, as other tables do. Any other "
    "change of type would rewrite every row. `polynya plan` finds it before the step.",
)
QUERY_NOT_INCREMENTAL: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-078",
    title="a query with `incremental: strict` has to be computed as a whole",
    message="the query has to be computed as a whole: {reason}",
    state=_RESULT_KEPT,
    fix="change the query, or set `incremental: auto`",
    page="`incremental: strict` refuses a query if Polynya cannot tell which rows of its result "
    "the changes of its inputs concern. `docs/incremental-sql.md` lists the reasons.",
)
EXPECTATION_FAILED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-080",
    title="the result of a query does not satisfy an expectation",
    message="{failed}",
    state=_RESULT_KEPT,
    fix="correct the inputs, the query or the expectation",
    page="`expect` of a derived table says what each result has to satisfy. A step whose result "
    "fails an expectation with `on_failure: stop` commits nothing. The message has each of them, "
    "the number of rows, and the keys of some. The step is tried again with growing pauses, so it "
    "succeeds by itself once the inputs are right. With `on_failure: warn` it would be committed, "
    "and with `quarantine` without the rows that fail.",
)
EXPECTATION_REFUSED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-081",
    title="an expectation cannot be judged",
    message="{expectation} cannot be judged: {reason}",
    state=_RESULT_KEPT,
    page="An expectation names a column that the result does not have, a value that does not fit "
    "the type of its column, or an expression that Spark refuses. Whether columns and types fit is "
    "known when the table is derived.",
)
RELATIONSHIP_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-082",
    title="a relationship names a table of its own transform",
    message="{table} is made by the same transform",
    state=_NOT_READ,
    fix="make the two tables in two transforms, so that one of them reads the other",
    page="A relationship is judged against a table of the tasks in `from`, at the snapshot that "
    "the step reads. The tables of one transform are derived in steps of their own, so each might "
    "be compared with an older state of the other.",
)
QUERY_ROW_NOT_REPLAYABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-140",
    title="a quarantined row of a query is not read again",
    message="{relation} has its rows from a query, so none of them is read again",
    state="nothing was changed",
    fix="correct the inputs, the query or the expectation: rows of a query leave the quarantine by "
    "the step in which they pass",
    page="An expectation with `on_failure: quarantine` puts rows aside for as long as they fail "
    "it. No landed record stands behind such a row. Each step judges the rows that it computes, "
    "so a row that passes again is inserted, and leaves the quarantine, in the same commit.",
)
PROJECT_INPUT_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-141",
    title="a task of another project cannot be read",
    page="`from` of a transform or a data mart may name a task of another project: `{project: "
    "crm_core, task: customers}`. The other project is the folder `projects/crm_core` of this one, "
    "or a symbolic link to it, and both keep their tables in the same catalog and warehouse.",
)
VIEW_HAS_TABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-142",
    title="a view has the name of a table that its transform kept before",
    message="the query is a view now, and its rows are still in {table}",
    state="table and views are as the last step left them; other tables continue",
    fix="give the view another name, or drop the table: `DROP TABLE` in Spark, with its views",
    page="`materialize: view` keeps no rows. Polynya drops no table by itself, since its history "
    "may not be found anywhere else. The other way round it needs nothing: the table's live view "
    "takes the place of the view.",
)
