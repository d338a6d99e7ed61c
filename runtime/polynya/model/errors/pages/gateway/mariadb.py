"""Pages of the gateway (GTW) for MariaDB and MySQL."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-GTW-040",
        "MariaDB or MySQL does not answer",
        "The server refused the connection, went away, has too many sessions or ended the "
        "statement. This may pass by itself, and the capture tries again with growing pauses "
        "(`errors: {environment: …}`). What has landed is whole, and the capture goes on from "
        "there. When it lasts, look at host and port of the connection and at the server's log.",
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
        "The database's own message and number say why. What has landed is whole, and the "
        "capture goes on from there when the cause is gone.",
    ),
    ErrorPage(
        "POLYNYA-GTW-045",
        "a table of MariaDB or MySQL changed while it was read",
        "An ALTER, RENAME or DROP came between two reads. Nothing of that part has landed. It is "
        "read again with the table as it is then.",
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
        "The load follows the key of a table from part to part, and the key that it stood at means "
        "nothing any more. What has landed of the table stays. Load it again from its beginning.",
    ),
    ErrorPage(
        "POLYNYA-GTW-048",
        "MariaDB or MySQL cannot be captured like this",
        "Nothing was captured. Either a table would come wrongly (it has system versioning, or a "
        "column of a type that is not known), or `rows` asks for a filter, which a binlog does not "
        "have, or the binlog has no transaction yet that a capture could begin after. The message "
        "says which; leave the table out, take the setting away, or change a row.",
    ),
)
