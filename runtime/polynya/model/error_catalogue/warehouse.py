"""Errors of the warehouse and its catalog: lost, damaged, copied, unreachable."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConflictError, DependencyError, OperationError

#: The fix of `TABLE_FILE_MISSING` where the file is metadata.
METADATA_FILE_MISSING_FIX: Final = (
    "put the file back from a backup, or run `polynya doctor --repair` to go back to the newest "
    "metadata that exists"
)
_NOTHING_STARTED: Final = "nothing was started; the tables are unchanged"

NO_TABLES_YET = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-008",
    title="no tables yet",
    message="the target {target} has no tables yet",
    state="nothing was run",
    fix="run `polynya run --once`",
    page="Nothing was written to the target so far. A run creates the tables.",
)
CATALOG_DATABASE_UNREACHABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-015",
    title="the database of the catalog does not answer",
    state="the tables are as of the last completed commit; every commit is atomic",
    fix="check that the server runs and has the database, and check `catalog.uri` of the target",
    page="The catalog of the target is in PostgreSQL, and the server cannot be reached or has no "
    "such database.",
)
CATALOG_LOGIN_REFUSED = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-016",
    title="the database of the catalog refuses the login",
    state=_NOTHING_STARTED,
    fix="check `catalog.user` and `catalog.password` of the target, and that the user may create "
    "and write tables there",
    page="The user or the password is wrong, the server accepts that user from other addresses "
    "only, or the user may not use the tables. `catalog.user` and `catalog.password` name "
    "variables of the environment: check the values of those. The user needs to create, read and "
    "change the tables `iceberg_tables` and `iceberg_namespace_properties`.",
)
WAREHOUSE_REMOVED = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-017",
    title="the warehouse was removed while a run worked in it",
    message="the catalog {is_what}: the warehouse, or a part of it, was removed during the run",
    state="nothing of this step was written; the contents of the folder are gone with it",
    fix="end the run. If only the catalog is gone, `polynya doctor --repair` registers the tables "
    "again; otherwise restore the folder from a backup, or start over with `polynya run`",
    page="A step failed, and the catalog of the warehouse is gone or empty, though this run had "
    "tables in it. Only the run may change these files. Without a backup a new run reads "
    "everything that has landed and is still there.",
)
CATALOG_DAMAGED = ErrorEntry(
    DependencyError,
    "POLYNYA-LAKE-040",
    title="the catalog file is damaged",
    message="the catalog file is damaged, or is not a catalog",
    state="nothing was started; the tables in the warehouse are unchanged",
    fix="put the file back from a backup, or run `polynya doctor --repair`, which moves it aside "
    "and registers the tables again",
    page="`catalog.db` in the warehouse names the current metadata of each table. It is not an "
    "SQLite file, or it is incomplete. A repair keeps the damaged file as `catalog.db.damaged-1` "
    "and registers each table of the warehouse from its newest metadata. The next run creates the "
    "views.",
)
CATALOG_LOST = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-041",
    title="the catalog is lost",
    message="the catalog {is_what}, and its warehouse holds tables",
    state=_NOTHING_STARTED,
    fix="put the file back, or run `polynya doctor --repair` to register the tables again; to "
    "start from scratch, remove {warehouse}",
    page="The warehouse holds tables, but its catalog is empty or missing. A run would start with "
    "an empty catalog and read everything again. A repair registers each table from its newest "
    "metadata.",
)
TABLES_IN_OTHER_WAREHOUSE = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-042",
    title="the tables are in another warehouse",
    message="the catalog names files of another warehouse for {tables}: this one was copied or "
    "moved",
    state="nothing was started; the tables in both warehouses are unchanged",
    fix="run `polynya adopt` to make the tables in this folder its own; to keep using the other "
    "warehouse, set `warehouse` of the target",
    page="A project folder was copied or moved, and its catalog still names the files at the "
    "former location, because Iceberg writes absolute paths. Working on them would change the "
    "original.",
)
TABLE_FILE_MISSING = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-043",
    title="a file of a table is missing",
    state="nothing of this step was written",
    fix="put the file back from a backup; `polynya verify` checks the files of each table",
    page="The catalog or a table names a file that is not there. It was deleted, or the warehouse "
    "was copied while a run worked in it. For a missing metadata file `polynya doctor --repair` "
    "uses the newest one that exists: an earlier state with its own position, from which the next "
    "run continues.",
)
METADATA_FILE_UNREADABLE = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-080",
    title="a metadata file cannot be read",
    message="the metadata of a table or view cannot be read: {reason}",
    state="other tables are not affected",
    fix=METADATA_FILE_MISSING_FIX,
    page="The catalog names a metadata file that is not one: it is damaged, cut off, of something "
    "else, or longer than 128 MiB. `polynya serve` refuses this table or view and serves the "
    "others.",
)
TABLE_NOT_IN_WAREHOUSE = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-044",
    title="a table is not in this warehouse",
    message="the table {table} is not in this warehouse",
    state="nothing was changed",
    fix="copy the whole warehouse; or set `warehouse` of the target to the folder of the tables",
    page="`polynya adopt` needs all files of each table in the folder of the warehouse, at the "
    "same relative paths as before. Copy the whole warehouse while nothing works in it.",
)
WAREHOUSE_IN_USE = ErrorEntry(
    ConflictError,
    "POLYNYA-LAKE-045",
    title="another process works in the warehouse",
    message="another process committed to {table} at the same time",
    state="the catalog is unchanged",
    fix="stop all runs and agents of this warehouse, then run the command again",
    page="A commit was made while the tables were adopted.",
)
CATALOG_NOT_LOCAL = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-046",
    title="the catalog is not on this machine",
    message="the catalog of the target {target} is not a file on this machine",
    state="nothing was changed",
    fix="repair the catalog with the tools of its database or service",
    page="`polynya adopt` and `polynya doctor --repair` work on a catalog file in SQLite only.",
)
CATALOG_SERVICE_UNREACHABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-LAKE-062",
    title="the REST catalog does not answer",
    state="the tables are as of the last completed commit; every commit is atomic",
    fix="check that the server runs, and `catalog.uri` of the target; `polynya doctor` asks it",
    page="The server of the catalog cannot be reached, took too long, or answered with an error of "
    "its own (HTTP 429 or 5xx). A run tries again by itself. After a commit without an answer, the "
    "next step reads the table again to see whether the commit was made.",
)
CATALOG_SERVICE_REFUSED = ErrorEntry(
    DependencyError,
    "POLYNYA-LAKE-063",
    title="the REST catalog refuses the login",
    state=_NOTHING_STARTED,
    fix="check the variables that `catalog.credential` or `catalog.token` of the target name, and "
    "what that client may do in the catalog",
    page="The server answered with HTTP 401 or 403, or the OAuth2 server gave no token. The client "
    "needs to create schemas, to list, create, load and change tables, and to do the same with "
    "views where the catalog holds views.",
)
CATALOG_SERVICE_UNUSABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-LAKE-064",
    title="the REST catalog cannot be used",
    message="the catalog cannot be used: {reason}",
    state=_NOTHING_STARTED,
    fix="check `catalog.uri`, `catalog.warehouse` and `catalog.prefix` of the target",
    page="Something answers at the address and speaks no REST protocol of Iceberg, does not know "
    "the warehouse, or wants its clients to load a class or to follow it to another server.",
)
CATALOG_UNCONDITIONAL = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-065",
    title="the catalog takes commits without their conditions",
    message="the catalog took a commit whose condition was not met",
    state="a table made for the test was changed, and dropped; other tables are unchanged",
    fix="use a catalog that checks the requirements of commits, as Iceberg's REST protocol says",
    page="Polynya gives each commit the condition that the table still has the snapshot that the "
    "commit is based on. Where a catalog ignores it, two processes overwrite each other's commits. "
    "`polynya doctor` tries this on a table of its own, and so does the first run.",
)
CATALOG_MOVED = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-066",
    title="the tables were moved to another catalog",
    message="the tables of {schema} are in another catalog now: {place}",
    state=_NOTHING_STARTED,
    fix="use the target with that catalog; to come back, move the tables from there",
    page="`polynya catalog move` moved the tables of a schema. Runs on the former catalog would "
    "start from nothing. A file in the warehouse, `.polynya/catalogs/SCHEMA.json`, names the "
    "catalog that has the tables.",
)
CATALOG_MOVE_UNFINISHED = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-067",
    title="a move to another catalog is not finished",
    message="the tables of {schema} are on their way from {start} to {place}",
    state="each table is in one of the two catalogs or in both, unchanged",
    fix="run the same `polynya catalog move` again: it continues where it ended",
    page="`polynya catalog move` was interrupted. Nothing is lost, and nothing may write until "
    "the move is finished.",
)
CATALOG_NAMES_TAKEN = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-068",
    title="the other catalog has tables of the same names",
    message="the catalog of the target {target} already has {tables}, with other contents",
    state="nothing was changed",
    fix="drop or rename those tables there, or give the tasks another `schema`",
    page="`polynya catalog move` replaces no table that it did not bring.",
)
CATALOG_MOVE_IMPOSSIBLE = ErrorEntry(
    OperationError,
    "POLYNYA-LAKE-069",
    title="tables cannot be moved between these targets",
    message="the tables cannot be moved: {reason}",
    state="nothing was changed",
    fix="give both targets the same `warehouse` and different catalogs",
    page="A move copies no data: both targets need the same warehouse. Names in Glue are in lower "
    "case, so tables with capitals cannot move there.",
)
CATALOG_MOVE_OVERTAKEN = ErrorEntry(
    ConflictError,
    "POLYNYA-LAKE-070",
    title="another process commits while tables are moved",
    message="another process committed to {table} during the move",
    state="the table is in its former catalog with that commit; tables moved so far are in the new "
    "one",
    fix="stop all runs and agents of the project, then run the same `polynya catalog move` again",
    page="A run was at work. The move ended before it took this table out of its former catalog.",
)
