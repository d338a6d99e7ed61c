"""Pages of captures (GTW): their settings, connections and processes."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
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
