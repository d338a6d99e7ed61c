"""Patterns of paths with dates: what they match, how their paths begin, what is refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from polynya.model.patterns import file_pattern

DAY = datetime(2026, 11, 23, tzinfo=UTC)


def test_a_date_is_found_in_folders_and_in_names() -> None:
    assert file_pattern("<yyyy>/<MM>/<dd>/part-*.json.gz").date("2026/11/23/part-7.json.gz") == DAY
    assert file_pattern("export_<yyyy><MM><dd>.csv").date("export_20261123.csv") == DAY
    assert file_pattern("y=<yyyy>/m=<MM>/*/x").date("y=2026/m=11/anything/x") == DAY.replace(day=1)


@pytest.mark.parametrize(
    "path",
    [
        "2026/11/23/other.json",
        "2026/11/23/deeper/part-1.json",
        "2026/11/part-1.json",
        "26/11/23/part-1.json",
        "2026/13/23/part-1.json",
        "2026/02/30/part-1.json",
    ],
)
def test_a_path_of_another_form_or_without_a_real_date_does_not_match(path: str) -> None:
    assert not file_pattern("<yyyy>/<MM>/<dd>/part-*.json").matches(path)


def test_a_placeholder_that_stands_twice_is_the_same_number() -> None:
    pattern = file_pattern("<yyyy>/<MM>/<dd>/x-<yyyy><MM><dd>-*.csv")

    assert pattern.matches("2026/11/23/x-20261123-1.csv")
    assert not pattern.matches("2026/11/23/x-20261124-1.csv")


def test_a_star_stays_in_one_folder() -> None:
    pattern = file_pattern("*/part-*.json")

    assert pattern.matches("a/part-.json")
    assert not pattern.matches("a/b/part-1.json")


def test_how_paths_begin_is_known_by_the_date_as_far_as_there_is_no_star() -> None:
    pattern = file_pattern("in/<yyyy>/<MM>/<dd>/part-*.json")

    assert [pattern.start(depth, DAY) for depth in sorted(pattern.starts)] == [
        "in/",
        "in/2026/",
        "in/2026/11/",
        "in/2026/11/23/part-",
    ]
    assert file_pattern("<yyyy>/*/<MM>/x").starts.keys() == {0, 1}


def test_a_date_that_begins_with_the_day_is_predicted_by_the_day_only() -> None:
    pattern = file_pattern("export_<dd>.<MM>.<yyyy>.csv")

    assert pattern.starts.keys() == {0, 3}
    assert pattern.start(3, DAY) == "export_23.11.2026.csv"
    assert not pattern.in_order


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<yyyy>/<mm>/x", "`<mm>` is not a date without `<MM>`"),
        ("<yyyy>/<dd>/x", "`<dd>` is not a date without `<MM>`"),
        ("<MM>/x", "`<MM>` is not a date without `<yyyy>`"),
        ("<YYYY>/x", "`<YYYY>` is none of <yyyy> <MM> <dd> <HH> <mm>"),
        ("a<b", "`<` is none of"),
        ("**/x", "`**` is not known"),
        ("../x", "leaves its folder"),
        ("/x", "not relative"),
    ],
)
def test_what_is_no_pattern_is_refused_with_its_reason(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        file_pattern(text)


def test_folders_before_the_dates_may_have_stars() -> None:
    pattern = file_pattern("eu/*/<yyyy>/<MM>/x-*.json")
    part = pattern.below("eu/shop [1]/")

    assert pattern.folders == ("eu", "*")
    assert part is not None
    assert part.start(2, DAY) == "eu/shop [1]/2026/11/x-"
    assert part.date("eu/shop [1]/2026/11/x-1.json") == DAY.replace(day=1)
    assert pattern.below("us/shop/") is None
    assert file_pattern("<yyyy>/*/x").folders == ()
