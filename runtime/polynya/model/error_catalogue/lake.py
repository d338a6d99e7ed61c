"""Errors of the tables: owners, commits, reloads, suspensions, types, rebuilds."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import (
    ConflictError,
    DependencyError,
    FencedError,
    InternalError,
    OperationError,
    StaleStepError,
    SuspendedError,
    TaskStoppedError,
)

_NOTHING_CHANGED: Final = "nothing was changed"
_NOTHING_COPIED: Final = "nothing of this batch was copied; the table is unchanged"
_FILES_STAY: Final = "nothing of this batch was copied; its files stay where they are"
_RETRIED: Final = "nothing was written; the run retries this step immediately"
_LOAD_KEPT: Final = "the loaded rows are kept next to Current, which is unchanged"
_OLD_TYPE: Final = (
    "remove the declared type, or give the dataset a new name to build a new table from the landed "
    "data"
)


# Owners and commits

TABLE_TAKEN_OVER = ErrorEntry(
    FencedError,
    "POLYNYA-LAKE-002",
    title="another owner took over",
    message="{owner} took over {table} (epoch {epoch}, ours {our_epoch})",
    state="nothing of this step was written; the other owner continues",
    fix="run this task in one process only",
    page="A process with a higher epoch owns the dataset now. `polynya run` takes the table back "
    "when the other process has not committed for a minute (15 minutes while a reload is under "
    "way).",
)
TABLE_CHANGED_BY_OWNER = ErrorEntry(
    ConflictError,
    "POLYNYA-LAKE-003",
    title="another owner changed the table",
    message="another owner changed {table} since this step began ({reason})",
    state="nothing of this step was written; the other owner's data is intact",
    fix="do nothing if a command such as `reload` or `replay` did it: a run continues by itself "
    "after a minute; otherwise end one of two processes that run the same task",
    page="The commit was refused because the table has changed since the state that it is based "
    "on: compare-and-swap.",
)
COMMIT_UNKNOWN = ErrorEntry(
    DependencyError,
    "POLYNYA-LAKE-004",
    title="the outcome of a commit is unknown",
    message="the catalog did not say whether the commit of {table} was made: {reason}",
    state="either all of the step is in the table or nothing; the next run checks before it writes",
    fix="check the catalog, then run again",
    page="The next run looks for its own marker in the table before it writes. Never repair this "
    "by hand.",
)
COMMIT_FAILED = ErrorEntry(
    DependencyError,
    "POLYNYA-LAKE-005",
    title="a commit failed",
    message="the commit of {table} failed: {kind}: {reason}",
    state="nothing of this step was written; the table was read again to make sure",
    fix="check that the catalog and the warehouse can be reached, then run again",
    page="The catalog reported an error, and the table does not contain the step.",
)
TWO_STATES = ErrorEntry(
    InternalError,
    "POLYNYA-LAKE-006",
    title="a table holds two states",
    message="{table} holds two state rows of one kind",
    state="nothing was written",
    fix="roll the table back to the snapshot before it was changed by another program",
    page="Another program than Polynya changed the internal table.",
)
ROWS_DO_NOT_ADD_UP = ErrorEntry(
    InternalError,
    "POLYNYA-LAKE-007",
    title="rows do not add up",
    message="{rows_in} records came in, {rows_out} went out, {filtered} were filtered and "
    "{quarantined} quarantined: that does not add up",
    state="nothing of this batch was committed; the landed files are untouched",
    fix="report this with the batch",
    page="Rows in always equal rows out plus filtered plus quarantined. Anything else is a bug.",
)
SNAPSHOT_EXPIRED = ErrorEntry(
    StaleStepError,
    "POLYNYA-LAKE-050",
    title="the snapshot of a step has expired",
    message="the snapshot of {table} that a step was computed from has expired",
    state=_RETRIED,
    fix="let the engine that expires snapshots of this table keep them for longer than the longest "
    "apply, or leave expiry to Polynya",
    page="An apply, or a rewrite, was computed from a snapshot that another engine expired before "
    "the commit, so the step can no longer be checked. Polynya itself never expires a snapshot "
    "that its own process works on.",
)
FILES_CHANGED_BY_ENGINE = ErrorEntry(
    StaleStepError,
    "POLYNYA-LAKE-051",
    title="another engine changed files that a step works on",
    message="another engine changed files of {table} that this step works on",
    state=_RETRIED,
    fix="do nothing unless it happens often; then leave compaction of this table to Polynya, or "
    "let the other engine leave the partition `asset_state` alone",
    page="A step removes files that it has read, and the files of the states that it follows. "
    "Another engine, such as a compaction by Spark or Athena, replaced them before the commit. If "
    "it happens often, steps cost twice as much.",
)
TABLE_DROPPED = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-083",
    title="another program dropped a table",
    message="{table} is not in the catalog any more: another program dropped it",
    state="nothing of this step was committed; landed files stay where they are",
    fix="restore the table, or let the next run make it from the landed files that are still there",
    page="A step was about to commit to a table that another program had dropped. The next run "
    "makes the table again and reads everything that is still in the landing folder. Where landed "
    "files were removed by their retention, reload the dataset from its source.",
)
COLUMN_GONE = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-081",
    title="another program removed or renamed a column",
    message="{table} has had the column {column}, and has it no more",
    state="nothing of this step was written; its files stay where they are, and rows keep what the "
    "column held as long as nobody rewrites them",
    fix="rename it back (`ALTER TABLE … RENAME COLUMN`); after a drop, add it again with its type "
    "and reload the dataset, or restore the table from a backup",
    page="Polynya adds, renames and drops columns of an internal table by itself, and remembers "
    "which ones there are. This column was removed or renamed by another program. If Polynya added "
    "it again, all rows would have lost their values without a word. A column that was renamed "
    "back has its values again, because Iceberg knows columns by their numbers.",
)
COLUMN_OF_OTHER_TYPE = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-082",
    title="another program added a column of another type",
    message="{table} has a column {column} that is not of the type {wanted}",
    state=_FILES_STAY,
    fix="drop that column (`ALTER TABLE … DROP COLUMN`), or rename it; the next run adds its own",
    page="The source has a new column, and the internal table has one of this name that Polynya "
    "did not add and that cannot take its values. Keep own columns out of internal tables: join "
    "them in a view.",
)
LAYOUT_CHANGED_BY_OTHER = ErrorEntry(
    StaleStepError,
    "POLYNYA-LAKE-052",
    title="a table changed while its columns or layout were changed",
    message="another engine or node changed {table} while its columns or layout were changed",
    state=_RETRIED,
    fix="do nothing; the retry starts from the present state of the table",
    page="A step adds, drops or renames columns of a table, or changes its layout. The catalog "
    "refused that, because another engine or another node committed at the same moment. If another "
    "node is the new owner of the table, the retry is refused for that reason.",
)
IMPOSSIBLE_COLUMNS = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-061",
    title="a table cannot have these columns",
    message="{table} cannot have these columns or this layout",
    state=_FILES_STAY,
    fix="give the column another name at the source or in the list of `columns`, or leave it out "
    "with `except_columns`",
    page="Two columns or fields have one name in an Iceberg table (`a.b`, and the field `b` of "
    "`a`; or names that differ only in case), or a column has the name of one of Iceberg's "
    "metadata columns (`_file`, `_pos`, `_deleted`, `_spec_id`, `_partition`, `_row_id`, "
    "`_last_updated_sequence_number`). Records that bring such a name go to quarantine by the rule "
    "`bad_column`; this error comes where settings make it, in a list of `columns` or with "
    "`nested: expand`.",
)


# What a table keeps for its whole life

SECOND_TASK = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-009",
    title="two tasks want one table",
    message="the task {owner} fills {table}, and {task} is configured to fill it too",
    state=_NOTHING_COPIED,
    fix="give {task} a `prefix` or another `schema`, or the dataset another `name`",
    page="A table is filled by one task. Two captures may hold tables of one name, which shows "
    "only when they are read. The landed files stay.",
)
KEYS_CHANGED = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-010",
    title="the keys of a dataset changed",
    message="the keys of {dataset} changed from {old} to {new}",
    state=_NOTHING_COPIED,
    fix="restore the old keys, or give the dataset a new name to build a new table",
    page="A table keeps the keys with which it was created, because its versions are matched by "
    "them.",
)
ORDER_CHANGED = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-020",
    title="the order of a dataset changed",
    message="`{setting}` of {dataset} was {old} and has changed: copied and new events have no "
    "common order",
    state=_NOTHING_COPIED,
    fix="restore the old `{setting}`, or give the dataset a new name to build a new table",
    page="A table keeps the columns (`sequence_by`), the mode and the kind of source that gave its "
    "events their order. Events of another order cannot be compared with the existing ones, and "
    "the newest version of a record would be a guess.",
)
FORMAT_VERSION_LOWERED = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-022",
    title="a table does not go back to an older format",
    message="`format_version` of {dataset} was lowered from {old} to {new}, which a table cannot "
    "follow",
    state="nothing was written; the table is unchanged",
    fix="set `format_version: {old}` again, or give the dataset a new name to build a new table",
    page="Iceberg upgrades a table to a later version of its format and never back: the deletion "
    "vectors of version 3 mean nothing to a reader of version 2.",
)
FOREIGN_DELETES = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-023",
    title="deletes of a table cannot become deletion vectors",
    message="{table} has equality deletes, or position deletes that are not Parquet; format v3 "
    "needs them in deletion vectors, and Polynya cannot convert them",
    state="nothing of this step was written; the table is unchanged",
    fix="rewrite these deletes with the engine that made them, or compact the table with it, then "
    "run again; a table of version 2 may also stay one",
    page="In version 3 of Iceberg's format a data file has one deletion vector, which holds all "
    "deletes of the file. Polynya reads position deletes in Parquet and other vectors; another "
    "engine gave this table equality deletes, or position deletes in Avro or ORC.",
)


# Reloads and extracts

NO_RELOAD = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-011",
    title="no reload is under way",
    message="no reload of {table} is under way",
    state=_NOTHING_CHANGED,
    fix="start one with `polynya reload`",
    page="There is no reload to resume or abandon.",
)
OTHER_RELOAD = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-012",
    title="another reload is under way",
    message="another reload of {table} is under way: {mode} of {source}, not {requested}",
    state="{rows} rows are loaded; Current is unchanged",
    fix="resume it with `--mode {mode}`, or discard it with `--abandon`",
    page="A reload that was stopped or killed keeps its mode and its files until it ends: its rows "
    "are next to Current. `polynya run` resumes a full extract.",
)
NOTHING_TO_COMPARE_BY = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-013",
    title="a table without keys cannot be reloaded",
    message="{table} has no keys yet, or keeps every event as a row: a reload cannot match its "
    "rows",
    state=_NOTHING_CHANGED,
    fix="give the dataset `keys` and run it once",
    page="A reload compares by key. A table that keeps every event as a row has none, and a table "
    "that was never filled has nothing to compare with.",
)
NOTHING_TO_RELOAD = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-014",
    title="there is nothing to reload from",
    message="there is nothing to reload {relation} from: {reason}",
    state=_NOTHING_CHANGED,
    fix="land the new full load at the glob of `initial_load`, or name its files with `--files`",
    page="No landed file matches the glob of the full load. A reload from nothing would delete "
    "every record.",
)
LOAD_INCOMPLETE = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-015",
    title="the load of a reload is incomplete",
    message="the load of {table} is incomplete ({problem}): the reload would delete the records "
    "that it lacks",
    state=_LOAD_KEPT,
    fix="discard the load with `--abandon`, fix the files and reload; or resume with "
    "`--accept-incomplete` to delete those records",
    page="A reload deletes the records that its load lacks. Here the load is empty, or some of it "
    "went to quarantine, so that records would be deleted because they could not be read.",
)
LOADED_FILE_CHANGED = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-016",
    title="a file changed while it was reloaded",
    message="{path} changed or disappeared while {table} was reloaded from it",
    state=_LOAD_KEPT,
    fix="discard the load with `polynya reload --abandon`, then reload when the file is complete",
    page="A file of the load was written to, or disappeared, after a part of it was read, so the "
    "loaded rows come from two extracts, or from an incomplete one. Writers should use another "
    "name until a file is complete.",
)
NO_SUCH_COMPARED_COLUMN = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-021",
    title="extracts are compared by a column that is not there",
    message="extracts are compared by {column}, and the table has no such column",
    state="the extract is kept next to Current, which is unchanged",
    fix="correct `check_columns` or `updated_at` in `extracts`, and run again",
    page="`check_columns` or `updated_at` of a dataset with `extracts` names a column that neither "
    "the table nor its extracts have. The next run continues with the same extract.",
)


# Suspension and policies

DATASET_SUSPENDED = ErrorEntry(
    SuspendedError,
    "POLYNYA-LAKE-017",
    title="a dataset is suspended",
    message="{relation} has been suspended since {since}: {reason}",
    state="earlier batches are applied and can be queried; later files are not read",
    fix="decide, then {resume}",
    page="A policy of the dataset requires a decision, or an operator suspended it. Nothing of "
    "that batch was copied, its files stay where they are, and the other datasets continue. For a "
    "bad record, the files before its file were copied, and nothing after them. Decide, and change "
    "the settings or the files if necessary. After `polynya dataset resume TASK DATASET` the next "
    "run continues from the first record that was not copied.",
)
TASK_STOPPED_BY_POLICY = ErrorEntry(
    TaskStoppedError,
    "POLYNYA-LAKE-018",
    title="a policy stopped the task",
    message="{subject}: {reason}, and `{policy}` is `stop`",
    state=_FILES_STAY,
    fix="fix the source, or change `{policy}`, and run again",
    page="The policy of the dataset for this situation is `stop`. For a bad record the files "
    "before its file were copied.",
)
NOT_SUSPENDED = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-019",
    title="a dataset is not suspended",
    message="{table} is not suspended",
    state=_NOTHING_CHANGED,
    fix="run `polynya status` to see which datasets are suspended, and why",
    page="Only a suspended dataset can be resumed.",
)


# Changes of types

VALUES_DO_NOT_FIT = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-024",
    title="stored values do not have the new type",
    message="{column} of {relation} cannot become {new}: {values} of the type {old} would "
    "change, such as {examples}",
    state="nothing was changed; the column is unchanged",
    fix="choose a type that holds these values, remove the declaration, or give the dataset a new "
    "name, which reads all landed data with the declared type",
    page="A declared type, or `widen_numbers`, requires rewriting the column, and each stored "
    "value has to stay exactly the same: no whole number beyond 2^53 in a `double`, no text that "
    "is not a number in a `bigint`. `decimal(38,10)` holds every `bigint`.",
)
REWRITE_DOES_NOT_ADD_UP = ErrorEntry(
    InternalError,
    "POLYNYA-LAKE-025",
    title="a rewrite does not add up",
    message="{rows:,} rows of {table} had to be rewritten, and {written:,} were",
    state="nothing was committed; the table is unchanged",
    fix="report this",
    page="The number of rewritten rows differs from the number of stored rows. This is a bug.",
)
KEY_TYPE_FIXED = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-026",
    title="the type of a key cannot change",
    message="{column} is in `keys` or `sequence_by` of {dataset}: its type cannot change",
    state=_NOTHING_CHANGED,
    fix=_OLD_TYPE,
    page="Columns of `keys` and `sequence_by` cannot be rewritten: the hash of the key and the "
    "position in the order of events are made of their text.",
)
LAYOUT_COLUMN_TYPE_FIXED = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-055",
    title="the type of a partition or sort column cannot change",
    message="files of {dataset} are, or were, partitioned or sorted by {column}: its type cannot "
    "change",
    state=_NOTHING_CHANGED,
    fix=_OLD_TYPE,
    page="A column whose type changes is rewritten as a new one, and files that are partitioned or "
    "sorted by the old one would lose it.",
)


# Rebuilds

NO_EVENTS_KEPT = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-030",
    title="a dataset has kept no events",
    message="{relation} {reason}: there is nothing to derive it from",
    state=_NOTHING_CHANGED,
    fix="set `changes_retention`; events are kept from then on",
    page="A rebuild derives Current and Prior from the applied events that `changes_retention` "
    "keeps. Without the setting they are gone once they are applied, and so are those from before "
    "it was set: the versions that they made are the base, which is not checked. `polynya reload` "
    "brings a table in line with a new full load instead.",
)
REBUILD_DURING_RELOAD = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-031",
    title="a rebuild has to wait for a reload",
    message="a reload of {table} is under way",
    state=_NOTHING_CHANGED,
    fix="finish the reload with `polynya reload`, or discard it with `--abandon`; then rebuild",
    page="A running reload compares its load with the present Current.",
)
