"""Errors of `polynya lineage` (TRF-090 to 099)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError

LINEAGE_SUBJECT_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-090",
    title="lineage of something that the project does not have",
    message="no dataset and no column is called {name}",
    state="nothing was read but the catalog",
    page="`polynya lineage` takes the name of a dataset or of a column of it: `schema.view`, "
    "`schema.view.column`, or without the schema where only one dataset has the name. Sources are "
    "called as the first column of `polynya lineage` shows them. A column that no table has yet "
    "and no setting names is not known.",
)
LINEAGE_SUBJECT_AMBIGUOUS: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-091",
    title="lineage of a name that several datasets have",
    message="{name} may be {meanings}",
    state="nothing was read but the catalog",
    fix="write the name with its schema",
    page="Two datasets have this name in different schemas, or a dataset and a column of another "
    "one are written alike.",
)
