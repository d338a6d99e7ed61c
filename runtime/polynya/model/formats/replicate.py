"""Files of Qlik Replicate on S3: a folder for each table, a `.dfm` file beside each file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from polynya.model.documents.problems import Problem
from polynya.model.formats.rules import EventSettings, FormatRules


def _order_of_its_own(events: EventSettings) -> Iterator[Problem]:
    if events.sequence_by:
        yield Problem(
            ("sequence_by",),
            "POLYNYA-CFG-019",
            "not for format `replicate`: its change sequence is the order",
            "take the line out",
        )


REPLICATE: Final = FormatRules(
    "replicate",
    tables_named_in="folders",
    brings_keys=True,
    brings_order=True,
    tells_operations=True,
    tells_load_time=True,
    landing_settings=frozenset({"header", "delimiter", "null_value"}),
    check_dataset=_order_of_its_own,
)
