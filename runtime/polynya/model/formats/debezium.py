"""Change events of Debezium: one file feeds many tables, and each event says what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from polynya.model.documents.problems import Problem
from polynya.model.formats.rules import Delivered, FormatRules


def _flattening_problems(landing: Delivered) -> Iterator[Problem]:
    for key in ("add_fields", "add_fields_prefix", "wrapped"):
        if getattr(landing, key) is not None and not landing.flattened:
            yield Problem(
                (key,),
                "POLYNYA-CFG-016",
                "has no meaning unless the events are flattened",
                "add `flattened: true`, or take the line out",
            )
    if landing.add_fields_prefix == "" and landing.add_fields is None:
        yield Problem(
            ("add_fields_prefix",),
            "POLYNYA-CFG-016",
            "without a prefix nothing tells the added fields from the columns of a row",
            "name them under `add_fields`, as the transform's `add.fields` does",
        )


DEBEZIUM: Final = FormatRules(
    "debezium",
    tables_named_in="records",
    brings_keys=True,
    brings_order=True,
    tells_operations=True,
    tells_load_time=True,
    reads_in_order=True,
    landing_settings=frozenset(
        {"flattened", "add_fields", "add_fields_prefix", "wrapped", "schema_registry"}
    ),
    events_in_tests="lines",
    lines_in_tests=True,
    check_landing=_flattening_problems,
)
