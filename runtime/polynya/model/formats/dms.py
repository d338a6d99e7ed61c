"""Files of AWS DMS on S3: a folder for each table; the settings name the keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from polynya.model.documents.problems import Problem
from polynya.model.formats.rules import EventSettings, FormatRules

#: The column that holds the operation of a row.
OPERATION: Final = "Op"


def _operation_as_column(events: EventSettings) -> Iterator[Problem]:
    if OPERATION in events.columns:
        yield Problem(
            ("columns",),
            "POLYNYA-CFG-016",
            f"`{OPERATION}` is no column of the table: it holds the operation",
            "take it out of `columns`",
        )


DMS: Final = FormatRules(
    "dms",
    tables_named_in="folders",
    brings_order=True,
    tells_operations=True,
    tells_load_time=True,
    has_header_lines=True,
    landing_settings=frozenset(
        {"header", "delimiter", "null_value", "timestamp_column", "cdc_path", "unsent_value"}
    ),
    check_dataset=_operation_as_column,
)
