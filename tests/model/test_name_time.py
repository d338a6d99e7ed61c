"""Times in the names of files."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from polynya.model.patterns import name_time_pattern, time_in_name


@pytest.mark.parametrize(
    ("name", "pattern", "time"),
    [
        ("users_20260131.csv", "%Y%m%d", datetime(2026, 1, 31, tzinfo=UTC)),
        ("date=2026-01-31/hour=07/a.csv", "date=%Y-%m-%d/hour=%H", datetime(2026, 1, 31, 7)),
        ("u-2026-01-31T235959.000123.json", "%Y-%m-%dT%H%M%S.%f",
         datetime(2026, 1, 31, 23, 59, 59, 123)),
        ("2026031.csv", "%Y%j", datetime(2026, 1, 31)),
        ("99999999_20260131.csv", "%Y%m%d", datetime(2026, 1, 31)),
        ("100%2026.csv", "100%%%Y", datetime(2026, 1, 1)),
        ("users_20261331.csv", "%Y%m%d", None),
        ("users_1202601310.csv", "%Y%m%d", None),
        ("users.csv", "%Y", None),
        ("users_\u0662\u0660\u0662\u0666.csv", "%Y", None),
    ],
)  # fmt: skip
def test_a_name_holds_a_time(name: str, pattern: str, time: datetime | None) -> None:
    assert time_in_name(name, pattern) == (time and time.replace(tzinfo=UTC))


@pytest.mark.parametrize("pattern", ["", "users", "%m-%d", "%Y%", "%Y-%b", "%Y %Y", "%y"])
def test_a_pattern_that_names_no_time_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="%Y"):
        name_time_pattern(pattern)
