"""Pages of the views for other engines."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-VIEW-001",
        "the name of a view is taken",
        "The Glue catalog has a table or a view of this name that Polynya did not make. It stays "
        "as it is, and Athena has no view of the dataset; its tables are right. Give the task a "
        "`prefix` or another `schema`, or drop the existing one.",
    ),
    ErrorPage(
        "POLYNYA-VIEW-002",
        "a view was changed again and again",
        "Each time a view for Athena was to be written, another writer had changed it. Run the "
        "tasks of a project in one process only; the next start publishes the views again.",
    ),
    ErrorPage(
        "POLYNYA-VIEW-003",
        "a view is too long for Glue",
        "The text of a view grows with the number of columns, and Glue takes 409,600 characters. "
        "The tables are right; leave columns out of the dataset with `except_columns`.",
    ),
    ErrorPage(
        "POLYNYA-VIEW-004",
        "a view has no translation",
        "The views are written for Spark and translated for Trino and Athena; something in this "
        "dataset, most likely the name or the type of a column, has no translation. The tables are "
        "right, and `polynya query` has its views. Report it with the names and types of the "
        "columns.",
    ),
)
