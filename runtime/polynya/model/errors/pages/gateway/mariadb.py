"""Pages of the gateway (GTW) for MariaDB and MySQL."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
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
