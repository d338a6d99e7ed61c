"""Errors of captured databases (GTW): PostgreSQL, MariaDB, MySQL, and those of Debezium alone."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import DependencyError, OperationError

# PostgreSQL.

POSTGRESQL_UNREACHABLE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-GTW-020",
    title="PostgreSQL does not answer",
    state="landed data stays; the capture continues after it",
    fix="check that the server runs and can be reached from here",
    page="The server cannot be reached, stops, starts, or has no free session. The capture retries "
    "as `errors.environment` of the task says, from where the newest landed batch ends. If it "
    "lasts, check the server and the network.",
)

POSTGRESQL_LOGIN_REFUSED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-021",
    title="PostgreSQL refuses the login",
    state="landed data stays; the capture continues after it",
    fix="check `user`, `password` and `database` of the connection, and pg_hba.conf of the server",
    page="The name or the password is wrong, the database does not exist, or pg_hba.conf has no "
    "line for this user from this machine. A capture needs lines for the database; a line for "
    "`replication` does not help.",
)

POSTGRESQL_NOT_SECURE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-022",
    title="the connection to PostgreSQL is not secure",
    state="landed data stays; the capture continues after it",
    fix="name the authority of the server's certificate in `tls.ca` of the connection, and the "
    "host as the certificate has it; for a server without TLS set `tls.mode`",
    page="The server offers no TLS, or its certificate is not trusted or is for another host. "
    "Nothing was sent to it. `tls.ca` names a file in PEM. `tls.mode: require` encrypts without "
    "proof of who the server is, `disable` is for servers on this machine.",
)

POSTGRESQL_RIGHT_MISSING: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-023",
    title="the PostgreSQL user lacks a right that a capture needs",
    state="landed data stays; the capture continues after it",
    fix="run the statements in docs/capture-postgresql.md that grant the rights",
    page="A capture needs REPLICATION, CONNECT on the database, USAGE on the schemas and SELECT on "
    "the tables, and no policy of row security that hides rows from it. The message names the "
    "missing right.",
)

REPLICA_IDENTITY_MISSING: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-025",
    title="tables have no replica identity",
    message="PostgreSQL would refuse updates and deletes of tables without a replica identity: "
    "{tables}",
    state="nothing was changed in the database",
    fix="give each a primary key, run ALTER TABLE {first} REPLICA IDENTITY FULL, or exclude it",
    page="PostgreSQL tells which row was updated or deleted by the replica identity, which is the "
    "primary key by default. A table without one that is published refuses updates and deletes "
    "from then on, so the capture does not publish such tables. A load on a schedule "
    "(`update_method: reload`) does not need one.",
)

CHANGES_NOT_IN_LOG: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-026",
    title="changes of a view, a foreign or an unlogged table cannot be captured",
    message="changes of {table} cannot be captured: {reason}",
    state="nothing was changed in the database",
    fix="exclude it, or load it in a task of its own with `update_method: reload`",
    page="The changes are not in the log of the database. You can also capture the tables that a "
    "view is made from.",
)

PUBLICATION_UNUSABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-027",
    title="the publication cannot be created or does not have all tables",
    message="the publication {publication} cannot be used: {reason}",
    state="nothing was changed",
    fix="let the owner of the tables run: {statement}",
    page="Only the owner of a table may publish it. After the owner has run the statement, start "
    "again: a publication that has the tables is used as it is. It must publish inserts, updates, "
    "deletes and truncates, and partitions as their partitioned table "
    "(`publish_via_partition_root`).",
)

SLOT_EXISTS: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-028",
    title="a replication slot of that name exists already",
    message="the replication slot {slot} exists already: {reason}",
    state="nothing was changed, and nothing of this task has landed",
    fix="give the task another `slot`; if no capture needs this one, run: {statement}",
    page="The slot is or was read by somebody. It is not touched, because another reader would "
    "lose changes. A slot that an earlier attempt of this task created, and that was never read, "
    "is replaced.",
)

TYPES_UNREADABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-029",
    title="the database has types that its stream cannot be read with",
    message="Debezium stops at domains over enums and at enums without labels, and the database "
    "has such types: {types}",
    state="nothing was changed in the database",
    fix="use the enum itself instead of the domain, or drop the type",
    page="Debezium reads all types of a database when it starts, whichever tables are captured.",
)

ROW_FILTER_OUTSIDE_IDENTITY: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-030",
    title="rows cannot be filtered by such a condition",
    message="rows of {table} cannot be filtered by {columns}: updates and deletes of the table "
    "would fail in the source",
    state="nothing was changed",
    fix="run ALTER TABLE {relation} REPLICA IDENTITY FULL, or use columns of the key",
    page="The condition uses columns that are not part of the replica identity. PostgreSQL refuses "
    "updates and deletes of a table that is published with such a condition.",
)

POSTGRESQL_STATEMENT_REFUSED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-031",
    title="PostgreSQL refused a statement",
    state="landed data stays; the capture continues after it",
    fix="remove the cause that the server names; its log may say more",
    page="The server answered with an error that does not pass by itself, often a condition of the "
    "task's settings that is not valid SQL of this database. The message has its words and its "
    "SQL state.",
)

POSTGRESQL_TABLE_CHANGED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-GTW-033",
    title="a table changed while it was loaded",
    state="its landed rows stay; the others come from a later view",
    fix="nothing to do: the capture reads the rest again",
    page="The table was truncated, rewritten (as by VACUUM FULL or a change of a column's type) or "
    "lost a column after the view that is read had begun. PostgreSQL shows such a table empty in "
    "older views, so the rows that were read are not used. A capture also starts again with this "
    "error if tables were altered each time that it created its slot.",
)

POSTGRESQL_TABLE_MISSING: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-034",
    title="the table does not exist",
    message="there is no table {tables}",
    state="nothing was changed in the database; landed data stays",
    fix="check `tables` of the task, and whether this user may see the schema",
    page="A table of the task is not in the database, or is in a schema that this user may not see."
    " Names are those of the catalog, `schema.table`, and case matters.",
)

KEY_MAY_BE_NULL: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-035",
    title="a table has no key but a unique index on columns that may be NULL",
    message="{table} has no key but a unique index on columns that may be NULL: {columns}",
    state="nothing was changed in the database",
    fix="give it a primary key, make the columns NOT NULL, or exclude it",
    page="Debezium takes such an index for the key, and rows with NULL in it would have none.",
)

# MariaDB and MySQL. `activity` is what failed, such as "reading shop.orders".

MYSQL_UNREACHABLE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-GTW-040",
    title="MariaDB or MySQL does not answer",
    message="{activity} failed: the database does not answer: {reason}",
    state="landed data is complete; the capture continues after it",
    fix="wait until it is back; if it lasts, check host and port of the connection",
    page="The server refused the connection, went away, has too many sessions or ended the "
    "statement. This may pass, and the capture retries with growing pauses (`errors: "
    "{environment: …}`). If it lasts, the server's log may have the reason.",
)

MYSQL_LOGIN_REFUSED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-041",
    title="MariaDB or MySQL refuses the login",
    message="the database refuses the login: {reason}",
    state="nothing was read",
    fix="check user and password of the connection, and the host from which the user may come",
    page="User, password, the host from which the user may come, or the right to the database is "
    "wrong. The password is read each time the capture connects, so one that was changed needs no "
    "other edit.",
)

MYSQL_TLS_FAILED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-042",
    title="TLS to MariaDB or MySQL fails",
    message="TLS to the database fails: {reason}",
    state="no password was sent, and nothing was read",
    fix="name the server's authority with `tls: {{ca: PATH}}`, a file in PEM; the host of the "
    "connection must be the name in the server's certificate",
    page="By default the server's certificate has to come from a known authority and has to have "
    "the host of the connection as its name; a server without TLS is refused. `tls: {mode: "
    "require}` encrypts without verifying the server, and `disable` is for this machine only.",
)

MYSQL_RIGHT_MISSING: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-043",
    title="the user of MariaDB or MySQL lacks a right",
    message="{activity} failed: the user lacks a right: {reason}",
    state="landed data is complete; the capture continues after it",
    fix="grant it; `polynya connection test` lists what the user needs",
    page="The message names the command or the table. The page on captures of MariaDB has the "
    "rights that a capture needs as SQL, and `polynya connection test` tries each.",
)

MYSQL_STATEMENT_REFUSED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-044",
    title="MariaDB or MySQL refused a statement",
    message="{activity} failed: {reason} (error {number})",
    state="landed data is complete; the capture continues after it",
    fix="remove the cause that the database names",
    page="The database refused the statement. Its own message and number give the reason.",
)

MYSQL_TABLE_CHANGED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-GTW-045",
    title="a table of MariaDB or MySQL changed while it was read",
    message="{activity} failed: a table changed meanwhile: {reason}",
    state="landed data is complete; nothing of the part that was read has landed",
    fix="nothing to do: the capture reads it again",
    page="An ALTER, RENAME or DROP came between two reads. The capture reads the part again with "
    "the new definition. A table that was dropped or renamed is no longer read.",
)

MYSQL_ROW_TOO_LARGE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-046",
    title="a row of MariaDB or MySQL is too large",
    message="{activity} failed: a row is too large: {reason}",
    state="landed data is complete; nothing of this part of the table has landed",
    fix="raise `max_allowed_packet` of the server, or exclude the table",
    page="The server sends no row that is longer than its `max_allowed_packet`. The setting may be "
    "1 GB at most.",
)

KEY_CHANGED_DURING_LOAD: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-047",
    title="the key of a table changed while it was loaded",
    message="the key of {table} changed while the table was loaded",
    state="its landed rows stay",
    fix="load it again: `polynya landing reload {task} {table}`",
    page="The load follows the key of a table from part to part. Other columns are the key now, so "
    "the position at which it stood means nothing any more.",
)

MYSQL_NOT_CAPTURED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-048",
    title="MariaDB or MySQL cannot be captured like this",
    state="nothing was captured",
    fix="exclude the table, or remove the setting",
    page="Either rows of a table would be wrong (it has system versioning, or a column of an "
    "unknown type), or a view has no changes that could be followed, or a table without a key has "
    "a column `polynya_row`, which is the name of the number of its rows in a load without "
    "changes, or `rows` asks for a filter, which a binlog does not have, or the binlog has no "
    "transaction yet that a capture could start after. The message says which. A load without "
    "changes in a task of its own (`update_method: reload`) reads views too.",
)

BINLOG_INCOMPLETE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-050",
    title="the binlog of MariaDB or MySQL does not hold whole rows",
    message="the binlog does not have all changes: {reason}",
    state="landed data stays; changes under this setting may be missing or incomplete",
    fix="restore the setting, also in the configuration file, then reload all tables with `polynya "
    "landing reload`",
    page="`binlog_format` has to be ROW and `binlog_row_image` FULL, for all sessions. MySQL needs "
    "`gtid_mode = ON`, too, no `binlog_row_value_options`, and `binlog_transaction_compression` "
    "off. With other settings changes are missing from the binlog, or lack some of their values, "
    "and nothing tells which. The capture stops as soon as it notices. `polynya connection test` "
    "says what each setting has to be.",
)

MYSQL_PASSWORD_NEEDS_TLS: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-059",
    title="MySQL takes the password by TLS only",
    message="the user logs in with caching_sha2_password, which needs TLS: {reason}",
    state="no password was sent, and nothing was read",
    fix="use `tls: {{mode: verify}}`, or `require` on this machine: MySQL 8 has TLS by default",
    page="MySQL 8 has `caching_sha2_password` as its default. Without TLS a client would have to "
    "encrypt the password with a key that the server sends and nobody verifies, so neither the "
    "load nor Debezium does that. MySQL 8 makes certificates of its own when it starts first, so "
    "`tls: {mode: require}` works at once, and `verify` with the server's authority as `ca`.",
)

KEYLESS_LOAD_NOT_SEPARABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-051",
    title="the load of a table without a key cannot be separated from its changes",
    message="{table} has no key, and its load cannot be separated from its changes: {reason}",
    state="nothing of the table has landed; the other tables continue",
    fix="give the table a primary key, or load it in a task of its own with `update_method: "
    "reload`",
    page="A row of a table without a key has to come either with the load or with the stream, "
    "never with both. For that the server has to tell which changes a view of the table has. "
    "MariaDB does for tables whose engine has transactions, such as InnoDB. It does not for others "
    "(MyISAM, Aria), and MySQL does not at all. The table is suspended.",
)

LOAD_NOT_CONTINUABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-056",
    title="a load of a table of MariaDB or MySQL broke off and cannot continue",
    message="the load of {table} broke off and cannot continue: {reason}",
    state="rows of this load have landed, next to those of the previous load",
    fix="remove the cause, then load the table again: `polynya landing reload {task}`",
    page="A load without changes (`update_method: reload`) reads each table by one query, as it "
    "was at one moment. The query ended before all rows were read. Another query would see "
    "another moment, in which a row may have another number. The table is left out of this load, "
    "or the load ends, as `errors.table` says. Rows of this load stay next to those of the "
    "previous load until the next load replaces both.",
)

# Databases that Debezium alone captures.

RELOAD_NOT_SUPPORTED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-052",
    title="such a database is not loaded without its changes",
    message="databases of type {type} are not loaded without their changes",
    state="nothing was captured",
    fix="write `update_method: cdc`",
    page="SQL Server, Oracle, Db2 and MongoDB are loaded by Debezium, which follows the changes "
    "after that.",
)

CONNECTOR_JARS_MISSING: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-053",
    title="jars of a connection are missing",
    message="a jar of the connection cannot be used: {reason}",
    state="nothing was captured",
    fix="put the connector of Debezium and the driver of the database there, or set "
    "`{variable}` where the process starts",
    page="For SQL Server, Oracle, Db2 and MongoDB you bring Debezium's connector and the driver of "
    "the database, whose licences are their own. `engine.jars` of the connection names files, or "
    "folders of them, below the folder of connectors of the machine: `/opt/polynya/connectors`, or "
    "the one that the variable `POLYNYA_CONNECTORS` of the environment names. Jars elsewhere are "
    "not loaded.",
)

CONNECTOR_TLS_NOT_SET: Final = ErrorEntry(
    OperationError,
    "POLYNYA-GTW-055",
    title="the TLS settings of a connector are missing",
    message="TLS to a database of type {type} has to be set in `engine.properties`: {settings}",
    state="nothing was sent and nothing was captured",
    fix="set what the connector's documentation says about TLS",
    page="TLS is on by default, and for this type of database it is in settings of its driver that "
    "Polynya does not know.",
)
