"""Whole columns of ISO 8601 texts at once: the common spelling, or nothing."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.values.instants import MIN_MICROS

# What `instants.iso_micros` and Arrow read alike; everything else goes value by value.
_COMMON = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6})?(Z|\+00:00)$"


def instants_of(texts: pa.Array) -> pa.Array | None:
    """Microseconds as timestamps of a string column whose values are all spelled `…T…Z`.

    `+00:00` at the end is the same.

    Returns:
        None when a value is spelled otherwise or is no time in the years 0001 to 9999.
    """
    # An empty selection counts as all: a column of NULLs has no other spelling.
    if not pc.all(pc.match_substring_regex(texts, _COMMON), min_count=0).as_py():
        return None
    try:
        times = texts.cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        return None
    lowest = pc.min(times.cast(pa.int64())).as_py()
    return None if lowest is not None and lowest < MIN_MICROS else times
