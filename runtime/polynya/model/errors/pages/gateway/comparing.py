"""Pages of captures: the comparison with the source."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
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
