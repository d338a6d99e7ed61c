"""The table of Polynya's functions: what expressions may call, with documentation of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from polynya.transform.functions import arrays, dates, logic, numbers, regex, spatial, strings
from polynya.transform.functions.core import ALLOWED_FUNCTIONS, Function

#: What stands before a name that also is one of Spark's.
QUALIFIER: Final = "polynya"

_FAMILIES: Final = {
    "Array": arrays.ARRAY_FUNCTIONS,
    "Comparison": logic.COMPARISON_FUNCTIONS,
    "Conditional": logic.CONDITIONAL_FUNCTIONS,
    "Date and time": dates.DATE_FUNCTIONS,
    "Mathematical": numbers.FUNCTIONS,
    "Regular expression": regex.FUNCTIONS,
    "Spatial": spatial.FUNCTIONS,
    "String": strings.FUNCTIONS,
    "Encoding and addresses": dates.ENCODING_FUNCTIONS,
    "Structural": arrays.STRUCTURAL_FUNCTIONS,
    "Type conversion": logic.CONVERSION_FUNCTIONS,
}

#: Functions that users of other tools look for, and why no expression can compute them (ADR 31).
LEFT_OUT: Final[Mapping[str, str]] = {
    "is_duplicate": "whether a value was met before depends on what arrived earlier, and a batch "
    "may be read again: give the table `keys`, so that it has one row for each value",
    "top_private_domain": "the public list of suffixes changes, so the same record would get "
    "another value later: join a table of suffixes in the query, or use `regex`",
}


def needs_qualifier(name: str) -> bool:
    """Whether a bare name is the function of Spark that was allowed before, or its syntax."""
    return name in ALLOWED_FUNCTIONS or name == "not"


def _written(name: str) -> str:
    """A name as a call has it."""
    return f"{QUALIFIER}.{name}" if needs_qualifier(name) else name


FUNCTIONS: Final[Mapping[str, Function]] = {
    row.name: replace(row, family=family, written=_written(row.name))
    for family, rows in _FAMILIES.items()
    for row in rows
}
