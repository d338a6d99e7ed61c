"""Pages of the gateway (GTW): what ends or holds up a capture, whichever database it reads."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-GTW-001",
        "databases of this type cannot be captured",
        "`type` of the connection names a database for which this Polynya has no reader. Nothing "
        "was captured. The message lists the types that there are.",
    ),
    ErrorPage(
        "POLYNYA-GTW-002",
        "a batch of a capture was written by a newer version",
        "The header of a captured batch has a version that this Polynya does not know. Nothing of"
        " it is copied, and it is retried later: upgrade the nodes that copy before those that "
        "capture.",
    ),
    ErrorPage(
        "POLYNYA-GTW-003",
        "the newest batch of a capture cannot be used",
        "The position of a capture is in the header of its newest batch. Without it the position "
        "in the database is unknown, so nothing is landed. Either the header cannot be read, or "
        "it was written after another batch than the present previous one: then one of the two "
        "was replaced, or belongs to another folder. Restore the object, or the one before it. If"
        " it is lost, the stream cannot continue exactly: give the task another `folder`, which "
        "loads its tables again, and let the storage task read that one.",
    ),
    ErrorPage(
        "POLYNYA-GTW-004",
        "another capture has landed into the same folder",
        "A batch is put under the next number, and only if nobody has put that number. This "
        "capture found a batch that is not its own, so it stops: the other one has the position "
        "now. Nothing was lost or doubled. Two processes of one task (on two machines, or one that "
        "was thought dead) or two tasks with one `folder` are the usual reasons.",
    ),
    ErrorPage(
        "POLYNYA-GTW-005",
        "the Java of a capture does not start",
        "Each capture process starts a Java of its own for Debezium's engine, with 512 MB for its"
        " objects. The message has its output: usually there is too little memory, or JAVA_HOME "
        "names a Java that is not 17 or 21.",
    ),
    ErrorPage(
        "POLYNYA-GTW-006",
        "the stream of changes has ended",
        "The engine that reads the database's log has stopped; the message has its output and the"
        " driver's. Everything that it had read has landed. The capture restarts after a pause, "
        "as `errors` of the task says, and continues exactly where it stopped. If the error "
        "returns each time, `polynya connection test` shows what the database lacks.",
    ),
    ErrorPage(
        "POLYNYA-GTW-007",
        "no table is captured",
        "The database shows no table that `tables` of the task includes and does not exclude. "
        "Names are `schema.table` (in MySQL and MariaDB `database.table`). A user sees only tables "
        "that it may read.",
    ),
    ErrorPage(
        "POLYNYA-GTW-008",
        "the stream of changes cannot continue from its position",
        "The database no longer has the log after the newest batch: its slot was dropped or "
        "invalidated, or its binlog was purged while the capture did not run. What has landed "
        "stays, but changes are missing since then. `polynya landing reload` of the whole task "
        "starts again: it empties each table right before its rows are loaded, so that rows that "
        "were deleted in between are removed. To prevent it, keep the capture running, and let "
        "the database keep its log for as long as an outage may last.",
    ),
    ErrorPage(
        "POLYNYA-GTW-009",
        "the history of schemas of a capture is missing",
        "To read a binlog the capture needs the schemas that tables had. They are kept as objects"
        " in `_history` below the task's folder, and the newest batch names the one it needs. "
        "Restore it; if it is lost, load all tables again with `polynya landing reload`.",
    ),
    ErrorPage(
        "POLYNYA-GTW-010",
        "a capture has failed unexpectedly",
        "The capture process met an error that it does not know: a bug. All that has landed stays. "
        "The trace is in the log of the process; values of rows are not in it.",
    ),
    ErrorPage(
        "POLYNYA-GTW-011",
        "a table without a key is too large to land at once",
        "Nothing orders the events of a table without a key, so its first load has to land as one"
        " object, together with the changes that arrived meanwhile: at most 5 GB, compressed. "
        "Until then the rows wait in a file in the scratch folder (TMPDIR), which needs twice "
        "that room. The table is suspended, nothing of it has landed, and the others continue. "
        "Give it a primary key, or load it in a task of its own with `update_method: reload`, "
        "which lands in parts. `polynya landing resume` retries it.",
    ),
    ErrorPage(
        "POLYNYA-GTW-012",
        "a table without a key cannot be loaded again",
        "A table without a key is an append-only view of all its events, so rows of a second load"
        " would exist twice. A requested reload skips it. If changes are missing, because its "
        "stream was lost or somebody removed it from the publication, it is suspended: landed "
        "data stays, and `polynya landing resume` continues with the changes from then on, "
        "without the missing ones. To have all rows, give it a primary key, or capture it in "
        "another task, whose folder and table are new.",
    ),
    ErrorPage(
        "POLYNYA-GTW-013",
        "a database does not show rows that its log has said already",
        "A change may be in the binlog a moment before the tables show it. The load of a table "
        "without a key waits for that, because the view that it reads has to have every change "
        "that was left out before. It waited for a minute. The usual reason is a replica that has "
        "to answer before the server commits (semi-synchronous replication) and is away. Nothing "
        "has to be done: it is tried again.",
    ),
    ErrorPage(
        "POLYNYA-GTW-057",
        "a value of a change cannot be captured",
        "Debezium, which reads the log of the database, cannot represent a value, such as NaN in "
        "a column `numeric(10,2) NOT NULL` of PostgreSQL. Neither NULL nor a part of it lands "
        "instead. The message names the table, the column and its type. The capture rereads the "
        "stream from the newest landed batch as often as `errors.table.retry` says. Then the "
        "table is suspended, or the capture ends, as `errors.table.then` says; the other tables "
        "continue. Change the value or the type of the column in the database, or exclude the "
        "table; `polynya landing resume` then loads the table again. If the column is a list, an "
        "update may have left it unchanged: PostgreSQL does not log a long list then, and "
        "Debezium has no mark for that in lists of most types. `ALTER TABLE … REPLICA IDENTITY "
        "FULL` puts it into the log.",
    ),
)
