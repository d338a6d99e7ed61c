"""Pages of captures (GTW): databases, connections, masks and comparisons."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorPage

COMPARE_PAGES: Final = (
    ErrorPage(
        "POLYNYA-GTW-090",
        "tables of this kind of database cannot be compared yet",
        "`polynya compare` lets the database compute hashes of its rows, in the database's own "
        "SQL. It is written for PostgreSQL, MariaDB and MySQL. `polynya verify` checks the tables "
        "without their source.",
    ),
    ErrorPage(
        "POLYNYA-GTW-091",
        "the tables did not catch up with the source in time",
        "A comparison reads one moment of the database, and waits until the tables have "
        "everything committed before it. For that the capture has to land it and the storage task"
        " to copy it: keep `polynya run` running. `polynya status` shows the positions of both; "
        "`--wait` gives them more time.",
    ),
    ErrorPage(
        "POLYNYA-GTW-092",
        "there is nothing to compare",
        "Nothing has landed yet, or no storage task makes tables of it: its `landing.path` is the "
        "folder of the capture, its `landing.format` is `debezium`. Then `polynya run` fills them.",
    ),
)


POSTGRESQL_PAGES: Final = (
    ErrorPage(
        "POLYNYA-GTW-020",
        "PostgreSQL does not answer",
        "The server cannot be reached, stops, starts, or has no free session. Landed data stays, "
        "and the capture retries as `errors.environment` of the task says: it continues where the"
        " newest landed batch ends. If it lasts, check the server and the network.",
    ),
    ErrorPage(
        "POLYNYA-GTW-021",
        "PostgreSQL lets this user not in",
        "The name or the password is wrong, the database is not there, or pg_hba.conf has no line "
        "for this user from this machine. A capture needs lines for the database; in old ways of "
        "replication `replication` stood there, here it does not help.",
    ),
    ErrorPage(
        "POLYNYA-GTW-022",
        "the connection to PostgreSQL is not safe",
        "The server offers no TLS, or its certificate is not trusted or is for another host. "
        "Nothing was sent to it. `tls.ca` of the connection names the authority that signed the "
        "certificate, in PEM. `tls.mode: require` encrypts without proof of who the server is, "
        "`disable` is for servers on this machine.",
    ),
    ErrorPage(
        "POLYNYA-GTW-023",
        "PostgreSQL does not give this user the rights that a capture needs",
        "A capture needs REPLICATION, CONNECT on the database, USAGE on the schemas and SELECT on"
        " the tables, and no policy of row security that hides rows from it. The message names "
        "the missing right; the page on capturing PostgreSQL has the statements.",
    ),
    ErrorPage(
        "POLYNYA-GTW-025",
        "tables have no replica identity",
        "PostgreSQL tells which row was updated or deleted by the replica identity, which is the "
        "primary key by itself. A table without one that is published refuses updates and deletes "
        "from then on, so such tables are not published. Give them a primary key or `ALTER TABLE … "
        "REPLICA IDENTITY FULL`, exclude them, or load them on a schedule.",
    ),
    ErrorPage(
        "POLYNYA-GTW-026",
        "changes of a view, a foreign or an unlogged table cannot be captured",
        "They are not in the log of the database. Exclude it, capture the tables that it is made "
        "from, or load it on a schedule with a task of its own that has `update_method: reload`.",
    ),
    ErrorPage(
        "POLYNYA-GTW-027",
        "the publication cannot be made or does not have all tables",
        "Only the owner of a table may publish it. Let the owner run the statement of the "
        "message, then start again: a publication that has the tables is used as it is. It must "
        "publish inserts, updates, deletes and truncates, and partitions as their partitioned "
        "table (`publish_via_partition_root`).",
    ),
    ErrorPage(
        "POLYNYA-GTW-028",
        "there is a replication slot of that name already",
        "Nothing of this task has landed, and a slot of its name is or was read by somebody. It "
        "is not touched, because another reader would lose changes. Give the task another `slot`,"
        " or drop the slot if no capture needs it. A slot that an earlier attempt of this task "
        "created, and that was never read, is replaced.",
    ),
    ErrorPage(
        "POLYNYA-GTW-029",
        "the database has types that its stream cannot be read with",
        "Debezium reads all types of a database when it starts, and stops at domains over enums "
        "and at enums without labels, whichever tables are captured. Use the enum itself, or drop "
        "the type.",
    ),
    ErrorPage(
        "POLYNYA-GTW-030",
        "rows cannot be left out by such a condition",
        "The condition uses columns that are not part of the replica identity. With it in a "
        "publication the source's own updates and deletes of that table would fail, so it was not "
        "made. Use columns of the key, or give the table REPLICA IDENTITY FULL.",
    ),
    ErrorPage(
        "POLYNYA-GTW-031",
        "PostgreSQL refuses a statement",
        "The server answered with an error that does not pass by itself, often a condition of the"
        " task's settings that is not valid SQL of this database. The message has its words and "
        "its SQL state.",
    ),
    ErrorPage(
        "POLYNYA-GTW-033",
        "a table changed while it was loaded",
        "The table was truncated, rewritten (as by VACUUM FULL or a change of a column's type) or"
        " lost a column after the view that is read had begun. PostgreSQL shows such a table "
        "empty in older views, so the rows that were read are not used. The rest of the table is "
        "read from a later view.",
    ),
    ErrorPage(
        "POLYNYA-GTW-034",
        "the table does not exist",
        "A table of the task is not in the database, or is in a schema that this user may not see. "
        "Names are those of the catalog, `schema.table`, and case matters.",
    ),
    ErrorPage(
        "POLYNYA-GTW-035",
        "a table has no key but a unique index on columns that may be NULL",
        "Debezium takes such an index for the key, and rows with NULL in it would have none. Give "
        "the table a primary key, make the columns NOT NULL, or exclude it.",
    ),
)


MARIADB_PAGES: Final = (
    ErrorPage(
        "POLYNYA-GTW-040",
        "MariaDB or MySQL does not answer",
        "The server refused the connection, went away, has too many sessions or ended the "
        "statement. This may pass, and the capture retries with growing pauses (`errors: "
        "{environment: …}`). Landed data is complete, and the capture continues from there. If it"
        " lasts, check host and port of the connection and the server's log.",
    ),
    ErrorPage(
        "POLYNYA-GTW-041",
        "MariaDB or MySQL does not let us in",
        "User, password, the host from which the user may come, or the right to the database is "
        "wrong. Nothing was read. The password is read each time the capture connects, so one "
        "that was changed needs no other edit.",
    ),
    ErrorPage(
        "POLYNYA-GTW-042",
        "TLS to MariaDB or MySQL fails",
        "By default the server's certificate has to come from a known authority and has to have "
        "the host of the connection as its name; a server without TLS is refused. The password "
        "was not sent. Name the authority with `tls: {ca: PATH}`. `tls: {mode: require}` "
        "encrypts without knowing to whom, and `disable` is for this machine only.",
    ),
    ErrorPage(
        "POLYNYA-GTW-043",
        "MariaDB or MySQL misses a right for the user",
        "The message names the command or the table. The page on captures of MariaDB has the "
        "rights that a capture needs as SQL, and `polynya connection test` asks for each.",
    ),
    ErrorPage(
        "POLYNYA-GTW-044",
        "MariaDB or MySQL refused a statement",
        "The database's own message and number give the reason. Landed data is complete, and the "
        "capture continues from there once the cause is gone.",
    ),
    ErrorPage(
        "POLYNYA-GTW-045",
        "a table of MariaDB or MySQL changed while it was read",
        "An ALTER, RENAME or DROP came between two reads. Nothing of that part has landed. The "
        "capture reads it again with the new definition.",
    ),
    ErrorPage(
        "POLYNYA-GTW-046",
        "a row of MariaDB or MySQL is too large",
        "The server sends no row that is longer than its `max_allowed_packet`. Nothing of that "
        "part of the table has landed. Raise the setting on the server (up to 1 GB), or leave the "
        "table out.",
    ),
    ErrorPage(
        "POLYNYA-GTW-047",
        "the key of a table changed while it was loaded",
        "The load follows the key of a table from part to part. Other columns are the key now, so "
        "the place at which it stood means nothing any more. What has landed of the table stays. "
        "Load it again from its beginning.",
    ),
    ErrorPage(
        "POLYNYA-GTW-048",
        "MariaDB or MySQL cannot be captured like this",
        "Nothing was captured. Either a table would come wrongly (it has system versioning, or a "
        "column of a type that is not known), or a view has no changes that could be followed, or "
        "a table without a key has a column `polynya_row`, which is the name of the number of its "
        "rows in a load without changes, or `rows` asks for a filter, which a binlog does not "
        "have, or the binlog has no transaction yet that a capture could begin after. The message "
        "says which; leave the table out, load it in a task of its own with `update_method: "
        "reload`, take the setting away, or change a row.",
    ),
    ErrorPage(
        "POLYNYA-GTW-049",
        "the stream has something that cannot be read",
        "Debezium, which reads the log of the database, met a statement or a value that it does "
        "not understand, and stops there, because it would misread everything after it. The "
        "message names it. In MariaDB this happens for statements with INET4, INET6, COMPRESSED "
        "columns or system versioning, for dates such as 2024-02-31, and for changes that a "
        "session wrote as statements. Everything before it has landed. `polynya landing reload` "
        "without table names restarts the capture after it: the stream from the present on, with "
        "the present tables, and all tables loaded. Until then the capture is stopped. If the "
        "message names a table, because its rows do not fit it or the stream has not defined it, "
        "only that table is suspended, as `errors.table` says, and the others continue; the same "
        "command brings it back, `resume` does not.",
    ),
    ErrorPage(
        "POLYNYA-GTW-050",
        "the binlog of MariaDB or MySQL does not hold whole rows",
        "`binlog_format` has to be ROW and `binlog_row_image` FULL, for all sessions. With other "
        "settings changes are missing from the binlog, or lack some of their values, and nothing "
        "tells which. The capture stops as soon as it notices. Restore both, also in the "
        "configuration file, and load all tables again (`polynya landing reload`): changes in "
        "between may have landed incompletely.",
    ),
    ErrorPage(
        "POLYNYA-GTW-051",
        "the load of a table without a key cannot be separated from its changes",
        "A row of a table without a key has to come either with the load or with the stream, never "
        "with both. For that the server has to tell which changes a view of the table has. MariaDB "
        "does for tables whose engine has transactions, such as InnoDB. It does not for others "
        "(MyISAM, Aria), and MySQL does not at all. The table is suspended and nothing of it has "
        "landed. Give it a primary key, or load it in a task of its own with "
        "`update_method: reload`.",
    ),
    ErrorPage(
        "POLYNYA-GTW-056",
        "a table of MariaDB or MySQL cannot be read on in the middle of its load",
        "A load without changes (`update_method: reload`) reads each table by one query, as it "
        "was at one moment. The query ended before all rows were read; the message has the "
        "reason. Another query would see another moment, in which a row may have another number. "
        "The table is left out of this load, or the load ends, as `errors.table` says. Rows of "
        "this load stay next to those of the previous load until the next load replaces both: "
        "remove the cause, and load the table again with `polynya landing reload`.",
    ),
)


CAPTURE_SETTINGS_PAGES: Final = (
    ErrorPage(
        "POLYNYA-GTW-060",
        "the connection does not exist",
        "A task of kind `landing` names a connection, and that is a file: `connection: "
        "shop_postgres` is `connections/shop_postgres.yml`. The name is that of the file, without "
        "its ending. Add the file, or correct the name.",
    ),
    ErrorPage(
        "POLYNYA-GTW-061",
        "settings of a capture that do not fit together",
        "Some settings are only for one way to capture or for one type of database: `schedule` is "
        "for `update_method: reload`, which needs it; `slot`, `publication` and `rows` are for "
        "PostgreSQL, and the first two only where changes are followed. The message names the one "
        "that has no meaning here, or that is missing.",
    ),
    ErrorPage(
        "POLYNYA-GTW-062",
        "a setting names a table that is not captured",
        "`load.order`, `load.filter`, `mask` and `rows` name single tables by their whole name, "
        "such as `public.orders`. This one is not among those that `tables` takes, so the setting "
        "would never do anything. With a mask that would be dangerous: a column that was to be "
        "hidden would be landed as it is. Correct the name; case matters.",
    ),
    ErrorPage(
        "POLYNYA-GTW-063",
        "a column is masked in several ways, or in none",
        "A mask is `drop`, or a mapping with one of `hash`, `truncate` and `replace`.",
    ),
    ErrorPage(
        "POLYNYA-GTW-093",
        "a condition for the source is more than a condition",
        "`load.filter` and `rows` become part of statements at the source database. Each is one "
        "condition that only reads: quotes and parentheses are closed, there are no comments, "
        "semicolons, variables, escapes such as `E'...'` or quotes such as `$$`, nothing that "
        "writes or locks, and no function that writes, waits, opens files or runs text. The "
        "message names the part that is not allowed. A load of the table waits; the other tables "
        "continue. For more, create a view in the database, and load the view.",
    ),
    ErrorPage(
        "POLYNYA-GTW-094",
        "certificates of a connection are elsewhere",
        "`tls.ca` is a `.pem` in `connections/` of the project, or a file below the folder of "
        "secrets of the machine: `/etc/polynya/secrets`, or the one that the variable "
        "`POLYNYA_SECRETS` names. Links are followed first. Nothing was read from the database.",
    ),
    ErrorPage(
        "POLYNYA-GTW-064",
        "a connection to another machine without TLS, or without a look at who answers",
        "`tls: {mode: disable}` sends the password and all rows unencrypted. It is only accepted "
        "for databases on this machine (`localhost`, `127.0.0.1`, `::1`). Write `verify`; where "
        "the certificate of the server is signed by an authority of your own, name its file with "
        "`ca`. `require` encrypts without verifying the server, so it is only accepted on this "
        "machine, or with `allow_unverified: true`.",
    ),
    ErrorPage(
        "POLYNYA-GTW-065",
        "a variable that holds a secret is not set",
        "The connection or a mask says `{env: NAME}`, and the process that captures has no such "
        "variable. It is read when a capture starts, in the environment of `polynya run`, of "
        "`polynya landing run` or of the agent.",
    ),
    ErrorPage(
        "POLYNYA-GTW-066",
        "a secret of a capture cannot be read",
        "`${file:PATH}` and `${secret:NAME#FIELD}` are read each time a capture starts. The file "
        "or the entry of Secrets Manager is not there, may not be read by this process, or is not"
        " text. The capture is retried as `errors.environment` says.",
    ),
    ErrorPage(
        "POLYNYA-GTW-067",
        "the capture process cannot be started",
        "Each capture works in a process of its own, because it has a JVM of its own. The system "
        "refused to start it. It is tried again as `errors.environment` says.",
    ),
    ErrorPage(
        "POLYNYA-GTW-068",
        "the capture process ended and did not say why",
        "It was killed, or it crashed. The landing zone holds everything that a capture has to "
        "remember, so the next process continues after the landed data: nothing is lost and the "
        "tables show nothing twice. The output of the process is in `log/capture-TASK.log` in the"
        " cache folder (`~/.cache/polynya`). It is started again as `errors.environment` says; a "
        "run with `--once` ends with this error.",
    ),
    ErrorPage(
        "POLYNYA-GTW-069",
        "the capture failed as often as it may",
        "`errors: {environment: {retry: N}}` says how often in a row a capture is started again "
        "after something failed that may pass by itself, such as a database that does not answer. "
        "It was that often, and the task has ended. Remove the cause that the message names, then "
        "start the task again. Until then the database keeps its changes, which takes disk there.",
    ),
    ErrorPage(
        "POLYNYA-GTW-070",
        "a captured table cannot be reloaded so",
        "`polynya reload` reads a captured table at its database, in one consistent view, and "
        "moves the differences to the table. The message says why that is not possible. With "
        "`load.filter` a load lacks rows on purpose; the modes that delete what a load lacks are "
        "refused then. Nothing was changed.",
    ),
)


CAPTURE_PAGES: Final = (
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


GENERIC_PAGES: Final = (
    ErrorPage(
        "POLYNYA-GTW-055",
        "how the way to a database is secured is not said",
        "TLS is on by default, and for this type of database it is in settings of its driver that "
        "Polynya does not know. Nothing was sent. Say them in `engine.properties` of the "
        "connection, as the connector's documentation has them.",
    ),
    ErrorPage(
        "POLYNYA-GTW-052",
        "such a database is not loaded without its changes",
        "SQL Server, Oracle, Db2 and MongoDB are loaded by Debezium, which follows the changes "
        "after that. `update_method: reload` is not for them.",
    ),
    ErrorPage(
        "POLYNYA-GTW-053",
        "jars of a connection are not there",
        "For SQL Server, Oracle, Db2 and MongoDB you bring Debezium's connector and the driver of "
        "the database, whose licences are their own. `engine.jars` of the connection names files, "
        "or folders of them, below the folder of connectors of the machine: "
        "`/opt/polynya/connectors`, or the one that the variable `POLYNYA_CONNECTORS` of the "
        "environment names. Jars elsewhere are not loaded. Nothing was captured.",
    ),
)


MASKING_PAGES: Final = (
    ErrorPage(
        "POLYNYA-GTW-080",
        "a masked column is not in its table",
        "`mask` names columns exactly as the database has them. One that is missing may have been "
        "misspelled, dropped or renamed; a renamed one would be written as it is under its new "
        "name. So the table waits and nothing of it is written until `mask` names columns that "
        "are there.",
    ),
    ErrorPage(
        "POLYNYA-GTW-081",
        "a mask would make one key of several",
        "The key identifies records. `drop`, `truncate` and `replace` would give several records "
        "the same key; `hash` gives each key a value of its own, the same in every event. Mask "
        "key columns by `hash`, or exclude the table.",
    ),
    ErrorPage(
        "POLYNYA-GTW-082",
        "an event cannot be masked",
        "An event of a table with masks does not have the form of a capture's events, so the "
        "values to hide are unknown. It was not written, and the error shows nothing of it. The "
        "table is retried and then suspended, as `errors.table` says; `polynya landing resume` "
        "loads it again.",
    ),
    ErrorPage(
        "POLYNYA-GTW-054",
        "a value is longer than `lobs` of the task allows",
        "The task says `lobs: {then: stop}`, so a longer value is neither cut nor left out, and "
        "nothing of it was written. `errors.table` says what follows, of a load and of a change: "
        "the table is tried again and then suspended, or the capture ends. Raise `lobs.limit`, or "
        "write `then: truncate` or `then: null`; `polynya landing resume` then loads the table "
        "again.",
    ),
)
