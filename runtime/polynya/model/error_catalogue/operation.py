"""Errors of operation: agents, maintenance, queries, quarantine, views, captured tables."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import (
    ConfigError,
    ConflictError,
    DependencyError,
    InternalError,
    OperationError,
)

_TABLES_RIGHT: Final = "the tables are correct; other engines have no such view"


# Agents

WORK_FOLDER_IN_USE = ErrorEntry(
    ConflictError,
    "POLYNYA-AGT-001",
    title="another agent works in this folder",
    state="nothing was started; the other agent continues",
    fix="stop the other agent, or give this one another folder with `--work DIR`",
    page="A work folder holds the last good configuration and the state of one agent. Two agents "
    "on one machine need a folder each, and different tasks.",
)
WORK_FOLDER_NOT_WRITABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-AGT-002",
    title="the work folder cannot be written",
    message="the work folder cannot be written: {reason}",
    state="the tasks continue with the previous configuration",
    fix="check the disk and the owner of the folder",
    page="A new configuration takes effect once it is saved on disk, so that the agent can start "
    "while its source cannot be read.",
)
NO_AGENT_IN_FOLDER = ErrorEntry(
    OperationError,
    "POLYNYA-AGT-003",
    title="no agent has worked in this folder",
    state="nothing was read",
    fix="name the folder that the agent was started with: `--work DIR`",
    page="`polynya agent status` shows what an agent wrote into its work folder, and there is "
    "nothing.",
)


# Maintenance

MAINTENANCE_DURING_RELOAD = ErrorEntry(
    OperationError,
    "POLYNYA-MNT-001",
    title="no maintenance during a reload",
    message="a reload of {table} is under way",
    state="nothing was changed",
    fix="finish the reload with `polynya reload`, or discard it with `--abandon`",
    page="A reload stores rows next to the current ones and moves them at its end. Until then runs "
    "leave the table alone, and so does `polynya maintain`.",
)
UNKNOWN_MAINTENANCE_ACTION = ErrorEntry(
    ConfigError,
    "POLYNYA-CLI-014",
    title="no such maintenance action",
    message="the action {action} is not built",
    fix="use one of {actions}",
    page="`--action` takes one of the actions that `polynya maintain --help` lists, and may be "
    "given several times. An action that is not built yet cannot be taken.",
)
CLEANUP_OF_USED_FILE = ErrorEntry(
    InternalError,
    "POLYNYA-MNT-010",
    title="a clean-up would have deleted a file in use",
    message="the clean-up after an expiry of {table} would have deleted {count} files of the "
    "current snapshot",
    state="the snapshots have expired, and no file was deleted; the table is complete",
    fix="report it with the metadata of the table",
    page="After an expiry Iceberg lists the files that no snapshot reaches any more. One of them "
    "was in the current snapshot. This is a bug. The files that can be deleted are removed later "
    "as orphans.",
)
FOLDER_LISTED_UNDER_OTHER_NAME = ErrorEntry(
    OperationError,
    "POLYNYA-MNT-011",
    title="the folder of a table lists under another name",
    message="{count} files of the current snapshot of {table} are missing in the listing of its "
    "folder",
    state="nothing was deleted",
    fix="run `polynya verify` to see whether the files exist; if they do, the folder is reached by "
    "another name: remove its orphans by hand",
    page="Before orphans are removed, every file of the current snapshot has to be in the listing "
    "of the table's folder. Some are not: they are missing, or the folder is reached by another "
    "path than the metadata names, for example through a link. Then every file would look like an "
    "orphan.",
)


# Queries and quarantine

STATEMENT_NOT_ANSWERED = ErrorEntry(
    OperationError,
    "POLYNYA-QRY-001",
    title="a statement was not answered",
    message="the statement was not answered: {reason}",
    state="no data was changed",
    page="Spark refused the statement or failed in it, or it does more than read. A statement may "
    "hold queries and what shows metadata: no `INSERT`, no `TRANSFORM ... USING`, no "
    "`IDENTIFIER(...)`, no function that runs code (`reflect`, `java_method`) or opens a file, and "
    "no path in the place of a table. Views are called `schema.name`, `schema.name__history` and "
    "`schema.name__changes`. `where` is the statement; for a file, its number and the line where "
    "it begins.",
)
STATEMENT_NEEDS_SPARK = ErrorEntry(
    OperationError,
    "POLYNYA-QRY-002",
    title="a statement needs Spark",
    message="the statement was not answered: the embedded engine leaves it to Spark: {reason}",
    state="no data was changed",
    fix="let Spark answer it: `polynya query` without `--engine embedded`, where Java is installed",
    page="`--engine embedded`, the API and the console use only the embedded engine. It answers "
    "plain questions over "
    "small and medium tables if its rows are certain to be Spark's. The message names the part "
    "that needs Spark, with the reason.",
)
READ_REFUSED = ErrorEntry(
    ConfigError,
    "POLYNYA-QRY-003",
    title="a read asks for what a table does not have",
    message="the table was not read: {reason}",
    state="no data was changed",
    page="A read from Python (`polynya.open`) names a dataset, a column, a condition or a snapshot "
    "that the table does not have, or asks for history of a dataset that keeps none. `where` is "
    "the dataset.",
)
READ_NEEDS_SPARK = ErrorEntry(
    OperationError,
    "POLYNYA-QRY-004",
    title="a read needs Spark",
    message="the table was not read: only Spark can read it: {reason}",
    state="no data was changed",
    fix="ask with `polynya query --engine spark`, or leave out the column that the reason names",
    page="Reads from Python (`polynya.open`) need no JVM. They leave to Spark what they would not "
    "surely read as Spark does: pending changes of one record that claim the same place in the "
    "order of events, keys of floating-point or nested types with pending changes, lists and maps "
    "of structs that have got another field since a file was written, columns that differ in "
    "capitals only, and a dataset whose settings were changed since its last run. For pending "
    "changes `polynya run --once --apply always` helps too.",
)
CATALOG_NEEDS_TOKEN = ErrorEntry(
    ConfigError,
    "POLYNYA-QRY-010",
    title="a served catalog needs a token",
    message="other machines can reach this address, and no token is set",
    state="nothing was started",
    fix="name a variable with a token of at least 32 bytes: `--token env:NAME`, or listen on "
    "127.0.0.1",
    page="Without a token `polynya serve --catalog` answers only programs on its own machine. "
    "On any other address clients send a token. `openssl rand -hex 32` makes one.",
)
CATALOG_TOKEN_UNUSABLE = ErrorEntry(
    ConfigError,
    "POLYNYA-QRY-011",
    title="the token of a served catalog cannot be used",
    message="the token cannot be used: {reason}",
    state="nothing was started",
    fix="set a variable of the environment to a token (`openssl rand -hex 32`), and name it: "
    "`--token env:NAME`",
    page="`--token` names a variable of the environment, because every user of a machine can read "
    "command lines. The token has at least 32 bytes: printable ASCII without spaces.",
)
CATALOG_ADDRESS_UNUSABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-QRY-012",
    title="the catalog cannot be served on an address",
    message="the server cannot listen on this address",
    state="nothing was started",
    fix="choose another `--port`, or `--host`; `--port 0` takes a free one",
    page="Another process listens there, the address is not one of this machine, or the port needs "
    "rights that the user does not have.",
)
CATALOG_TLS_UNUSABLE = ErrorEntry(
    ConfigError,
    "POLYNYA-QRY-013",
    title="the certificate of a served catalog cannot be used",
    message="the certificate or its key cannot be used",
    state="nothing was started",
    fix="give PEM files that belong together, the key without a password",
    page="`--tls-certificate` and `--tls-key` name PEM files. One of them cannot be read, the key "
    "has a password, or it is not that of the certificate.",
)
NO_SUCH_QUARANTINED_RECORD = ErrorEntry(
    OperationError,
    "POLYNYA-QUA-001",
    title="no such quarantined record",
    message="no quarantined record has the id {id}",
    state="nothing was changed",
    fix="run `polynya quarantine list` to see the ids",
    page="The id is not in quarantine, perhaps because the record was replayed.",
)
EXTRACT_RECORD_NOT_REPLAYABLE = ErrorEntry(
    OperationError,
    "POLYNYA-QUA-002",
    title="a record of a full extract cannot be replayed",
    message="records of {relation} belong to full extracts, which are compared as a whole: a "
    "single record cannot be replayed",
    state="nothing was changed",
    fix="land a corrected extract that contains the record under a later name",
    page="An extract is compared with the table as a whole, in its order among the others. A "
    "quarantined record comes back with the next extract that holds it.",
)


# Views

VIEW_NAME_TAKEN = ErrorEntry(
    OperationError,
    "POLYNYA-VIEW-001",
    title="the name of a view is taken",
    message="{view} in the Glue catalog was not made by Polynya",
    state="{view} is unchanged; the tables are correct; other engines have no such view",
    fix="give the task a `prefix` or another `schema`, or drop the existing one",
    page="The Glue catalog has a table or a view of this name that Polynya did not make. So Athena "
    "has no view of the dataset.",
)
VIEW_CHANGED_REPEATEDLY = ErrorEntry(
    ConflictError,
    "POLYNYA-VIEW-002",
    title="a view was changed again and again",
    message="the view {view} was changed again and again while it was published",
    state="the tables are correct; other engines may see an older form of the view",
    fix="run the tasks of a project in one process only",
    page="On each attempt to write a view for Athena, another writer had changed it. The next "
    "start publishes the views again.",
)
VIEW_TOO_LONG = ErrorEntry(
    OperationError,
    "POLYNYA-VIEW-003",
    title="a view is too long for Glue",
    message="the view {view} is longer than Glue allows",
    state=_TABLES_RIGHT,
    fix="leave columns out of the dataset with `except_columns`",
    page="The text of a view grows with the number of columns, and Glue allows 409,600 characters.",
)
VIEW_NOT_TRANSLATED = ErrorEntry(
    OperationError,
    "POLYNYA-VIEW-004",
    title="a view has no translation",
    message="the views of {relation} cannot be translated to the SQL of {engine}: {reason}",
    state=_TABLES_RIGHT,
    fix="leave the column out of the dataset with `except_columns`, or report it with the names "
    "and types of the columns",
    page="The views are written for Spark and translated for other engines; something in this "
    "dataset, most likely the name or the type of a column, has no translation. `polynya query` "
    "has the views, and so have the other engines.",
)
QUERY_VIEW_NOT_TRANSLATED = ErrorEntry(
    OperationError,
    "POLYNYA-VIEW-005",
    title="an engine does not have a view of a query",
    message="the view {view} is not translated to the SQL of {engine}: {reason}",
    state="the view is right in Spark; other views, and this one in other engines, are not "
    "affected",
    fix="write the query without it, or `materialize: table`",
    page="The query of a view (`materialize: view`) is translated only where each part of it has "
    "the same value in the engine as in Spark, for all values; the others are named here. A table "
    "is computed by Spark, and every engine reads its rows. "
    "[Views](transforms.md#views) lists what is translated.",
)


# Captured tables
