"""Errors of captures (GTW): their tasks, their process, landed batches, masks and comparisons.

Errors of one type of database are in `capture_databases`.
"""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import (
    ConfigError,
    ConflictError,
    DependencyError,
    InternalError,
    OperationError,
    TaskStoppedError,
)

# The stream, its position and its landed batches.

DATABASE_TYPE_NOT_CAPTURED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-001",
    title="databases of this type cannot be captured",
    message="databases of type {type} cannot be captured",
    state="nothing was captured",
    fix="use one of {supported}",
    page="`type` of the connection names a database that this Polynya cannot read.",
)

CAPTURED_BATCH_TOO_NEW: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-002",
    title="a batch of a capture was written by a newer version",
    message="a batch of a capture has version {version}, this Polynya reads version {readable}",
    state="nothing of the batch was copied; the next run retries it",
    fix="upgrade the nodes that copy to the version of those that capture",
    page="The header of a captured batch has a version that this Polynya does not know. Upgrade "
    "the nodes that copy before those that capture.",
)

NEWEST_CAPTURED_BATCH_UNUSABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-003",
    title="the newest batch of a capture cannot be used",
    message="the newest batch of the capture cannot be used: {reason}",
    state="nothing was landed after it; the database keeps its changes while it has room",
    fix="restore the object as it was written; if it is lost, give the task another `folder`",
    page="The position of a capture is in the header of its newest batch. Without it the position "
    "in the database is unknown, so nothing is landed. Either the header cannot be read, or it "
    "was written after another batch than the present previous one: then one of the two was "
    "replaced, or belongs to another folder. Restore the object, or the one before it. If it is "
    "lost, the stream cannot continue exactly. Another `folder` loads the tables again; let the "
    "storage task read that one.",
)

FOLDER_HAS_ANOTHER_CAPTURE: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-GTW-004",
    title="another capture has landed into the same folder",
    state="this capture landed nothing of what it had read; the other one continues, and nothing "
    "is lost or doubled",
    fix="stop one of the two captures, or give one of them another `folder`",
    page="A batch is put under the next number, and only if nobody has put that number. This "
    "capture found a batch that is not its own, so it stops: the other one has the position now. "
    "Two processes of one task (on two machines, or one that was thought dead) or two tasks with "
    "one `folder` are the usual reasons.",
)

CAPTURE_JAVA_NOT_STARTED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-GTW-005",
    title="the Java of a capture does not start",
    message="the Java of the capture does not start: {reason}",
    state="nothing was captured since the newest batch; the database keeps its changes",
    fix="set JAVA_HOME to a Java 17 or 21, and leave it enough memory on this machine",
    page="Each capture process starts a Java of its own for Debezium's engine, with 512 MB for its "
    "objects. The message has its output: usually there is too little memory, or JAVA_HOME names "
    "another version of Java.",
)

STREAM_ENDED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-GTW-006",
    title="the stream of changes has ended",
    message="the stream of changes has ended: {reason}",
    state="everything that was read has landed; the database keeps the changes after it",
    fix="check the database and the network; the capture restarts by itself",
    page="The engine that reads the database's log has stopped; the message has its output and the "
    "driver's. The capture restarts after a pause, as `errors` of the task says, and continues "
    "exactly where it stopped. If the error returns each time, `polynya connection test` shows "
    "what the database lacks.",
)

NO_TABLE_INCLUDED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-007",
    title="no table is captured",
    message="the database has no table that the task includes, or the user may not see it",
    state="nothing was captured",
    fix="check `tables` of the task, and the rights of the user with `polynya connection test`",
    page="The database shows no table that `tables` of the task includes and does not exclude. "
    "Names are `schema.table` (in MySQL and MariaDB `database.table`). A user sees only tables "
    "that it may read.",
)

STREAM_POSITION_LOST: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-008",
    title="the stream of changes cannot continue from its position",
    message="the stream cannot continue from its position: {reason}",
    state="landed data stays; changes since then are missing until the tables are reloaded",
    fix="reload all tables with `polynya landing reload`",
    page="The database no longer has the log after the newest batch: its slot was dropped or "
    "invalidated, or its binlog was purged while the capture did not run. A reload of the whole "
    "task starts again: it empties each table right before its rows are loaded, so that rows that "
    "were deleted in between are removed. To prevent it, keep the capture running, and let the "
    "database keep its log for as long as an outage may last.",
)

SCHEMA_HISTORY_MISSING: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-009",
    title="the history of schemas of a capture is missing",
    message="the history of schemas of the capture is missing",
    state="nothing was landed since the newest batch; the database keeps its changes",
    fix="restore the object; if it is lost, reload all tables with `polynya landing reload`",
    page="To read a binlog the capture needs the schemas that tables had. They are kept as objects "
    "in `_history` below the task's folder, and the newest batch names the one it needs.",
)

CAPTURE_FAILED_UNEXPECTEDLY: Final = ErrorEntry(
    InternalError,
    "POLYNYA-GTW-010",
    title="a capture has failed unexpectedly",
    message="the capture has failed unexpectedly: {exception}",
    state="landed data stays, and the next start continues after it",
    fix="report it with the trace in the log of the process",
    page="The capture process met an error that it does not know: a bug. The trace in its log has "
    "no values of rows.",
)

KEYLESS_LOAD_TOO_LARGE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-011",
    title="a table without a key is too large to land at once",
    message="the rows of {table}, which has no key, cannot land at once: {reason}",
    state="nothing of the table has landed; the other tables continue",
    fix="give the table a primary key, or load it in a task of its own with `update_method: "
    "reload`; TMPDIR sets the scratch folder",
    page="Nothing orders the events of a table without a key, so its first load has to land as one "
    "object, together with the changes that arrived meanwhile: at most 5 GB, compressed. Until "
    "then the rows wait in a file in the scratch folder, which needs twice that room. The table "
    "is suspended. A load with `update_method: reload` lands in parts. `polynya landing resume` "
    "retries the table.",
)

KEYLESS_TABLE_NOT_RELOADABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-012",
    title="a table without a key cannot be loaded again",
    message="{table} has no key and cannot be loaded again: its rows would exist twice",
    state="its landed data stays; changes that the stream did not bring are missing",
    fix="give it a primary key, or capture it into another folder and table; `polynya landing "
    "resume` continues with the changes from then on",
    page="A table without a key is an append-only view of all its events, so a second load would "
    "double its rows. A requested reload skips it. If changes are missing, because its stream was "
    "lost or somebody removed it from the publication, it is suspended.",
)

DATABASE_BEHIND_ITS_LOG: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-GTW-013",
    title="a database does not show rows that its log already has",
    message="the database does not show rows of {table} that its binlog already has",
    state="nothing of the table has landed; everything else continues",
    fix="nothing to do: the capture retries; check whether a replica for semi-synchronous "
    "replication is away",
    page="A change may be in the binlog a moment before the tables show it. The load of a table "
    "without a key waits for that, because the view that it reads has to have every change that "
    "was left out before. It waited for a minute. The usual reason is a replica that has to answer "
    "before the server commits.",
)

STREAM_UNREADABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-049",
    title="the stream has something that cannot be read",
    message="the stream of changes has {obstacle}",
    state="everything before it has landed; the stream stays there, and the database keeps its log",
    fix="reload all tables with `polynya landing reload`, which starts after it",
    page="Debezium, which reads the log of the database, met a statement or a value that it does "
    "not understand, and stops there, because it would misread everything after it. In MariaDB "
    "this happens for statements with INET4, INET6, COMPRESSED columns or system versioning, for "
    "dates such as 2024-02-31, and for changes that a session wrote as statements. PostgreSQL "
    "itself cannot decode a transaction if a table that it writes to was rewritten at the moment "
    "at which the slot was created. `polynya landing reload` without table names restarts the "
    "capture after it: the stream from the present on, with the present tables, and all tables "
    "loaded. Until then the capture is stopped. If the message names a table, because its rows do "
    "not fit it or the stream has not defined it, only that table is suspended, as `errors.table` "
    "says, and the others continue; the same command brings it back, `resume` does not.",
)

VALUE_NOT_CAPTURED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-057",
    title="a value of a change cannot be captured",
    message="a value of {table}.{column}, of type {type}, cannot be represented",
    state="everything before it has landed",
    fix="change the value or the type of the column, set REPLICA IDENTITY FULL if it is a list, or "
    "exclude the table; then run `polynya landing resume`",
    page="Debezium, which reads the log of the database, cannot represent a value, such as NaN in "
    "a column `numeric` of PostgreSQL. Neither NULL nor a part of it lands instead. "
    "The capture rereads the stream from the newest landed batch as often as `errors.table.retry` "
    "says. Then the table is suspended, or the capture ends, as `errors.table.then` says; the "
    "other tables continue. `polynya landing resume` loads the table again. If the column is a "
    "list, an update may have left it unchanged: PostgreSQL does not log a long list then, and "
    "Debezium has no mark for that in lists of most types. `ALTER TABLE … REPLICA IDENTITY FULL` "
    "puts it into the log.",
)

LIST_NOT_CAPTURED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-058",
    title="a list of PostgreSQL cannot be captured",
    message="a list in {table}.{column} has several dimensions, {shape}, and cannot be captured",
    state="everything before it has landed; nothing lands in its place",
    fix="change the value, drop the column with `mask: {{TABLE: {{COLUMN: drop}}}}`, or exclude "
    "the table; then run `polynya landing resume`",
    page="A column of arrays takes values of several dimensions, whatever its declaration says. "
    "Debezium has no such lists, so a load and the stream refuse them. Where the elements are "
    "text, UUID, JSON, addresses or ranges, Debezium writes names of Java's objects. "
    "Of other elements Debezium writes NULL for each inner list, exactly as for `{NULL,NULL}`, "
    "and warns of it in its log, by which the capture tells them apart. It rereads the stream as "
    "often as `errors.table.retry` says. Then the table is suspended, or the capture ends, as "
    "`errors.table.then` says; the other tables continue. A column that is declared with several "
    "dimensions, such as `integer[][]`, is left out from the start instead. To keep the values, "
    "store them as `jsonb`.",
)

# Settings of tasks and connections.

CONNECTION_MISSING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-GTW-060",
    title="the connection does not exist",
    message="there is no connection {connection}",
    fix="add the file to `connections/`, or correct the name",
    page="A task or the bindings of a target name a connection, and that is a file: `connection: "
    "shop_postgres` is `connections/shop_postgres.yml`. The name is that of the file, without its "
    "ending.",
)

CAPTURE_SETTINGS_CONFLICT: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-GTW-061",
    title="settings of a capture that do not fit together",
    fix="remove the setting, or add the missing one",
    page="Some settings are only for one way to capture or for one type of database: `schedule` is "
    "for `update_method: reload`, which needs it; `slot`, `publication` and `rows` are for "
    "PostgreSQL, and the first two only where changes are followed. The message names the setting "
    "that has no meaning here, or that is missing.",
)

TABLE_NOT_CAPTURED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-GTW-062",
    title="a setting names a table that is not captured",
    message="the task captures no table called {table}",
    fix="write the name of one table that `tables` includes, such as `public.orders`",
    page="`load.order`, `load.filter`, `mask`, `rows` and `incremental.tables` name single tables "
    "by their whole name. This one is not among those that `tables` includes, so the setting would "
    "never do anything. "
    "With a mask that would be dangerous: a column that was to be hidden would be landed as it is. "
    "Case matters.",
)

MASK_AMBIGUOUS: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-GTW-063",
    title="a column is masked in several ways, or in none",
    message="a column has exactly one mask",
    fix="write `drop`, or one of `hash`, `truncate` and `replace`",
    page="A mask is `drop`, or a mapping with one of `hash`, `truncate` and `replace`.",
)

TABLE_NOT_EXTRACTABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-095",
    title="new rows of a table cannot be found by a column",
    message="new rows of {table} cannot be found: {reason}",
    state="nothing of the table was read; the other tables continue",
    fix="correct `incremental`, or exclude the table and load it in a task of its own with "
    "`update_method: reload`",
    page="`update_method: incremental` finds new and changed rows by a column that grows with each "
    "insert and update. It needs a column of whole numbers, exact or double numbers, dates or "
    "times, and a key: that of the table, or `keys` of a view or a table without one. An `overlap` "
    "of a column of times is a duration, of numbers a number. The table is left out, and tried "
    "again with the next extraction.",
)

CONNECTION_NOT_SECURE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-GTW-064",
    title="a connection to another machine has no TLS, or does not verify the server",
    fix="write `tls: {{mode: verify}}`, with `ca` if the authority is your own",
    page="`tls: {mode: disable}` sends the password and all rows unencrypted. It is only accepted "
    "for databases on this machine (`localhost`, `127.0.0.1`, `::1`). Write `verify`; if the "
    "certificate of the server is signed by an authority of your own, name its file with `ca`. "
    "`require` encrypts without verifying the server, so it is only accepted on this machine, or "
    "with `allow_unverified: true`.",
)

SECRET_VARIABLE_NOT_SET: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-065",
    title="a variable that holds a secret is not set",
    message="the environment variable {variable} is not set",
    state="nothing was read from the database",
    fix="set it where Polynya is started",
    page="The connection or a mask says `{env: NAME}`, and the process that captures has no such "
    "variable. It is read when a capture starts, in the environment of `polynya run`, of `polynya "
    "landing run` or of the agent.",
)

CAPTURE_SECRET_UNREADABLE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-GTW-066",
    title="a secret of a capture cannot be read",
    state="nothing was read from the database; landed data stays",
    fix="put the secret there, let this process read it, or correct the reference",
    page="`${file:PATH}` and `${secret:NAME#FIELD}` are read each time a capture starts. The file "
    "or the entry of Secrets Manager does not exist, may not be read by this process, or is not "
    "text. The capture is retried as `errors.environment` says.",
)

CAPTURE_PROCESS_NOT_STARTED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-GTW-067",
    title="the capture process cannot be started",
    message="the capture process cannot be started: {reason}",
    state="nothing was captured; landed data stays",
    fix="free memory, processes or disk space on the machine",
    page="Each capture runs in a process of its own, because it has a JVM of its own. The system "
    "refused to start it. It is retried as `errors.environment` says.",
)

CAPTURE_PROCESS_DIED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-GTW-068",
    title="the capture process ended without a reason",
    message="the capture process ended {how} without a reason",
    state="landed data stays; the next process continues after it",
    fix="read its log, `log/capture-{task}.log` in the cache folder; if the system ended it for "
    "lack of memory, lower `load.parallel` or `load.chunk_rows`",
    page="The process was killed, or it crashed. The landing zone holds everything that a capture "
    "has to remember, so nothing is lost and the tables show nothing twice. The cache folder is "
    "`~/.cache/polynya`. The process restarts as `errors.environment` says; a run with `--once` "
    "ends with this error.",
)

CAPTURE_RETRIES_EXHAUSTED: Final = ErrorEntry(
    TaskStoppedError,
    "POLYNYA-GTW-069",
    title="the capture failed as often as it may",
    message="the capture failed {failures} times in a row, as often as `errors.environment` allows",
    state="landed data stays; the database keeps its changes for as long as it is configured to",
    fix="remove the cause, then start the task again",
    page="`errors: {environment: {retry: N}}` says how often in a row a capture restarts after a "
    "failure that may pass by itself, such as a database that does not answer. The task has ended. "
    "Until it starts again the database keeps its changes, which takes disk there.",
)

CAPTURED_TABLE_NOT_RELOADABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-070",
    title="a captured table cannot be reloaded so",
    state="nothing was changed",
    fix="remove the cause that the message names, then run `polynya reload` again",
    page="`polynya reload` reads a captured table at its database, in one consistent view, and "
    "moves the differences to the table. With `load.filter` a load lacks rows on purpose; the "
    "modes that delete what a load lacks are refused then.",
)

SOURCE_CONDITION_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-GTW-093",
    title="a condition for the source is more than a condition",
    message="{condition} is not one condition that only reads: {reason}",
    fix="write one condition in the SQL of the database, such as `created >= '2026-01-01'`, with "
    "texts in single quotes; for more, create a view in the database",
    page="`load.filter` and `rows` become part of statements at the source database. Each is one "
    "condition that only reads: quotes and parentheses are closed, there are no comments, "
    "semicolons, variables, escapes such as `E'...'` or quotes such as `$$`, nothing that writes "
    "or locks, and no function that writes, waits, opens files or runs text. A load of the table "
    "waits; the other tables continue. If you need more, create a view in the database, and load "
    "the view.",
)

CERTIFICATES_ELSEWHERE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-094",
    title="certificates of a connection are elsewhere",
    message="`tls.ca` is {path}: {reason}",
    state="nothing was read from the database",
    fix="put the certificates into `connections/` of the project as a `.pem`, or below the folder "
    "of secrets of the machine",
    page="`tls.ca` is a `.pem` in `connections/` of the project, or a file below the folder of "
    "secrets of the machine: `/etc/polynya/secrets`, or the one that the variable "
    "`POLYNYA_SECRETS` names. Links are followed first.",
)

# Masks and limits on values.

MASKED_COLUMN_MISSING: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-080",
    title="a masked column is not in its table",
    message="{table} has no column {column}, which has a mask",
    state="no row of the table was written since: a renamed column would be unmasked",
    fix="write the name as the database has it; if the column was dropped, remove its mask",
    page="`mask` names columns exactly as the database has them. One that is missing may have been "
    "misspelled, dropped or renamed; a renamed one would be written as it is under its new name. "
    "So the table waits until `mask` names columns that exist.",
)

KEY_MASK_NOT_UNIQUE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-081",
    title="a mask would make one key of several",
    message="{table}.{column} is part of the key, which only `hash` keeps distinct",
    state="nothing of the table was written",
    fix="mask it by `hash`, or exclude the table",
    page="The key identifies records. `drop`, `truncate` and `replace` would give several records "
    "the same key; `hash` gives each key a value of its own, the same in every event.",
)

EVENT_NOT_MASKABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-082",
    title="an event cannot be masked",
    message="an event of {table} cannot be masked: {reason}",
    state="the event was not written, and no log shows anything of it",
    fix="report it; without `mask` for this table it lands as it is",
    page="An event of a table with masks does not have the form of a capture's events, so the "
    "values to hide are unknown. The table is retried and then suspended, as `errors.table` says; "
    "`polynya landing resume` loads it again.",
)

VALUE_TOO_LONG: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-054",
    title="a value is longer than `lobs` of the task allows",
    message="a value of {table}.{column} has {size:,} bytes, and `lobs` allows {limit:,}",
    state="the value was not written; landed data stays",
    fix="raise `lobs.limit`, or write `then: truncate` or `then: null`; then run `polynya landing "
    "resume`",
    page="The task says `lobs: {then: stop}`, so a longer value is neither cut nor left out. "
    "`errors.table` says what follows, of a load and of a change: the table is retried and then "
    "suspended, or the capture ends. `polynya landing resume` loads the table again.",
)

# Comparisons.

DATABASE_TYPE_NOT_COMPARED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-090",
    title="tables of this type of database cannot be compared yet",
    message="tables of {type} cannot be compared yet",
    state="nothing was read and nothing was changed",
    fix="check the tables without their source: `polynya verify`",
    page="`polynya compare` lets the database compute hashes of its rows, in the database's own "
    "SQL. It is written for PostgreSQL, MariaDB and MySQL.",
)

TABLES_BEHIND_SOURCE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-091",
    title="the tables did not catch up with the source in time",
    message="the changes up to {position} of the source were not {step} in {seconds:g} seconds",
    state="the comparison is not complete; nothing was changed",
    fix="keep `polynya run` running for both tasks, or wait longer with `--wait`",
    page="A comparison reads one moment of the database, and waits until the tables have "
    "everything committed before it. For that the capture has to land it and the storage task to "
    "copy it. `polynya status` shows the positions of both.",
)

NOTHING_TO_COMPARE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-092",
    title="there is nothing to compare",
    message="there is nothing to compare: {reason}",
    state="nothing was read from the database",
    fix="land the tables with `polynya run`, and let a storage task with `landing: {{format: "
    "debezium, path: …}}` read the same folder",
    page="Nothing has landed yet, or no storage task makes tables of it: its `landing.path` is the "
    "folder of the capture, its `landing.format` is `debezium`.",
)
