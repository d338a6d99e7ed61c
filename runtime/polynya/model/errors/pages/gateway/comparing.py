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
        "the tables did not get in time what the source has",
        "A comparison reads one moment of the database, and waits until the tables have all that "
        "was committed before it. They get it when the capture lands it and the storage task "
        "copies what has landed: let `polynya run` work meanwhile. `polynya status` shows how far "
        "both are; `--wait` gives them more time.",
    ),
    ErrorPage(
        "POLYNYA-GTW-092",
        "there is nothing to compare",
        "Nothing has landed yet, or no storage task makes tables of it: its `landing.path` is the "
        "folder of the capture, its `landing.format` is `debezium`. Then `polynya run` fills them.",
    ),
)
