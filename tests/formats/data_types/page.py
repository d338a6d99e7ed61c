"""The tables of docs/data-types.md, and values at the edges of every type."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from tests.formats.helpers import column, rules, schema

PAGE = Path(__file__).parents[3] / "docs" / "data-types.md"
#: values in the file, the type of the column, values of the column
Sample = tuple[Any, str, list[Any]]

UTC = ZoneInfo("UTC")
FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999999)
WALLS = [FIRST, LAST, BEFORE_1970]
INSTANTS = [wall.replace(tzinfo=UTC) for wall in WALLS]
DAYS = [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)]
LARGE = [
    Decimal("12345678901234567890.123456789012345678"),
    Decimal("-99999999999999999999.999999999999999999"),
    Decimal("0.000000000000000001"),
]
A_UUID = UUID("12345678-1234-5678-1234-567812345678")
SPECIAL_FLOATS = [float("nan"), float("inf"), -0.0]


def lines_of(section: str) -> dict[str, str]:
    """First and second cell of the lines of a section's table."""
    text = re.split(rf"^## {section}$", PAGE.read_text(), flags=re.MULTILINE)[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return {row[0].strip(): row[1].strip() for row in rows[2:]}


def check(section: str, samples: dict[str, list[Sample]], reader: Callable[[Any], Any]) -> None:
    """Read every sample; the page names exactly these sources, and their types as they come out."""
    page = lines_of(section)
    assert list(page) == list(samples)
    for source, several in samples.items():
        for values, kind, expected in several:
            check_column(reader(values), kind, expected, source)
        found = {general(kind) for _, kind, _ in several}
        promised = set(re.findall(r"`([^`]+)`", page[source]))
        if promised:
            assert {general(one) for one in promised} == found, source


def check_column(batch: Any, kind: str, values: list[Any], source: str) -> None:
    """The column `x` has this type and exactly these values; no record is refused."""
    got = schema(batch)["x"], column(batch, "x"), rules(batch)
    # Their texts: NaN equals nothing, and 0 equals -0.0 and False.
    assert repr(got) == repr((kind, values, [])), source


def general(kind: str) -> str:
    """A type without its numbers and without what is inside."""
    return re.sub(r"<.*>", "", re.sub(r"\(\d.*\)|\(p,s\)|\(38,s\)", "()", kind))
