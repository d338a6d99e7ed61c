"""Pages of captures: masks of columns."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
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
