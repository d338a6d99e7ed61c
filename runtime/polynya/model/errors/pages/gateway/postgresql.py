"""Pages of the gateway for PostgreSQL."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
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
