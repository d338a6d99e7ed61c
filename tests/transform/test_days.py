"""Which expressions are only the day of a column, and so need no query."""

from __future__ import annotations

import pytest

from polynya.transform.expressions import day_of


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("CAST(hdr__landed_at AS DATE)", "hdr__landed_at"),
        ("cast(`At` as date)", "At"),
        ("CAST(at AS TIMESTAMP)", None),
        ("CAST(user.at AS DATE)", None),
        ("CAST(upper(at) AS DATE)", None),
        ("at", None),
    ],
)
def test_the_day_of_a_column_is_told_from_all_else(text: str, column: str | None) -> None:
    assert day_of(text) == column
