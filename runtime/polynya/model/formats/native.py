"""Files of records without change metadata: the configuration says what an event is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from polynya.model.contract.identifiers import shown
from polynya.model.documents.problems import Problem
from polynya.model.formats.rules import Delivered, FormatRules


def _dialect_problems(landing: Delivered) -> Iterator[Problem]:
    """One character cannot have two meanings."""
    escape = None if landing.escape == landing.quote_character else landing.escape
    meanings = {
        "delimiter": landing.delimiter_character,
        "quote": landing.quote_character or None,
        "escape": escape,
        "comment": landing.comment,
    }
    taken: dict[str, str] = {}
    for key, character in meanings.items():
        if character is None:
            continue
        first = taken.setdefault(character, key)
        if first != key:
            yield Problem(
                (key if key in landing.model_fields_set else first,),
                "POLYNYA-CFG-016",
                f"{shown(character)} is the `{first}` and the `{key}`",
                "choose another character for one of them",
            )
    marker = landing.null_value
    marks = (meanings["delimiter"], meanings["quote"])
    if marker and any(mark in marker for mark in marks if mark is not None):
        yield Problem(
            ("null_value",),
            "POLYNYA-CFG-016",
            f"{shown(marker)} holds a delimiter or a quote, so no field can be it",
            "write the text that separates two fields",
        )


JSON: Final = FormatRules("json", events_in_tests="lines", lines_in_tests=True)
CSV: Final = FormatRules(
    "csv",
    has_header_lines=True,
    landing_settings=frozenset(
        {
            "header",
            "delimiter",
            "null_value",
            "quote",
            "escape",
            "comment",
            "skip_lines",
            "encoding",
        }
    ),
    lines_in_tests=True,
    check_landing=_dialect_problems,
)
PARQUET: Final = FormatRules("parquet", events_in_tests="parquet")
AVRO: Final = FormatRules("avro")
ORC: Final = FormatRules("orc")

#: In the order of the published JSON Schema.
NATIVE: Final = (JSON, CSV, PARQUET, AVRO, ORC)
