"""Patterns of dates and times: Java's letters, and what they match."""

from __future__ import annotations

import re

import pytest

from polynya.model.time_patterns import time_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "parts"),
    [
        ("dd.MM.yyyy", "31.12.2026", {"day": "31", "month": "12", "year": "2026"}),
        ("d.M.yy", "1.2.26", {"day": "1", "month": "2", "year": "26"}),
        ("yyyyMMddHHmmss", "20261231235958",
         {"year": "2026", "month": "12", "day": "31", "hour": "23", "minute": "59",
          "second": "58"}),
        ("MM/dd/yyyy hh:mm a", "12/31/2026 11:59 pm",
         {"month": "12", "day": "31", "year": "2026", "half": "11", "minute": "59",
          "noon": "pm"}),
        ("uuuu-LL-dd'T'HH:mm[:ss[.SSS]]XXX", "2026-12-31T23:59+01:00",
         {"year": "2026", "month": "12", "day": "31", "hour": "23", "minute": "59",
          "offset": "+01:00"}),
        ("E, d MMM yyyy 'at' ''HH''", "thu, 31 DEC 2026 at '09'",
         {"weekday": "thu", "day": "31", "month": "DEC", "year": "2026", "hour": "09"}),
    ],
)  # fmt: skip
def test_a_pattern_takes_a_text_apart(pattern: str, text: str, parts: dict[str, str]) -> None:
    assert time_pattern(pattern).match(text) == parts


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("dd.MM.yyyy", "1.12.2026"),
        ("dd.MM.yyyy", "31.12.26"),
        ("dd.MM.yyyy", "31-12-2026"),
        ("dd.MM.yyyy", " 31.12.2026"),
        ("dd.MM.yyyy", "31.12.2026\n"),
        ("dd.MM.yyyy", "\u0663\u0661.12.2026"),
        ("yyyy-MM-dd HH:mmXXX", "2026-12-31 23:59+0100"),
    ],
)
def test_another_spelling_does_not_match(pattern: str, text: str) -> None:
    assert time_pattern(pattern).match(text) is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "it has no year"),
        ("dd.MM", "it has no year, `yyyy`"),
        ("yyyy-MM", "it has no day, `dd`"),
        ("DD.MM.YYYY", "the letter `D` is not supported"),
        ("yyyy-MM-ddTHH:mm", "the letter `T` is not supported"),
        ("yyyy-mm-dd", "it has no month"),
        ("yyyy-MM-dd HH:MM", "it has the month twice"),
        ("yyyy-MM-dd mm", "it has the minute without the hour"),
        ("yyyy-MM-dd hh:mm", "belong together"),
        ("yyyy-MM-dd HH:mm a", "belong together"),
        ("yyyyMd", "nothing separates `d` from the number before it"),
        ("yyy-MM-dd", "`yyy` has a number of letters that is not supported"),
        ("yyyy-MM-dd[ HH", "a `[` is not closed"),
        ("yyyy-MM-dd]", "`]` has no meaning here"),
        ("yyyy-MM-dd 'x", "`'` has no meaning here"),
        ("yyyy-MM-dd" + " " * 200, "longer than 100"),
    ],
)
def test_a_pattern_without_a_sense_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        time_pattern(pattern)
