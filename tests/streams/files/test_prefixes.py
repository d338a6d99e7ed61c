"""The prefixes that dates predict: nothing is missed, and their number has a bound."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from polynya.model.patterns import UNITS, file_pattern
from polynya.streams.files.listing import begun, following, prefixes, units

PATTERNS = [
    "<yyyy>/<MM>/<dd>/<HH>/<mm>/part-*.json",
    "<yyyy>/<MM>/<dd>/part-*.json",
    "in/y=<yyyy>/m=<MM>/d=<dd>/h=<HH>/*/x",
    "<yyyy>-<MM>/x-<dd>-*",
    "<yyyy><MM><dd><HH>-*.csv",
    "export_<dd>.<MM>.<yyyy>_*.csv",
    "<yyyy>/*/<MM>-<dd>.json",
    "<MM>/<yyyy>/*",
    "<yyyy>/x",
    "all/*/<yyyy>/x",
]
moments = st.datetimes(datetime(2019, 12, 1), datetime(2031, 1, 1), timezones=st.just(UTC))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def listed(pattern: str, begin: datetime | None, end: datetime) -> list[str]:
    return list(prefixes(file_pattern(pattern), begin, end))


@given(
    st.sampled_from(PATTERNS), moments, st.timedeltas(timedelta(0), timedelta(days=900)), st.data()
)
def test_a_file_dated_in_the_time_is_below_exactly_one_prefix(
    text: str, begin: datetime, length: timedelta, data: st.DataObject
) -> None:
    pattern = file_pattern(text)
    end = begin + length
    moment = data.draw(st.datetimes(naive(begin), naive(end), timezones=st.just(UTC)))
    path = "".join(part if part != "*" else "any" for part in pattern.tokens)
    for unit, form in zip(UNITS, ("%Y", "%m", "%d", "%H", "%M"), strict=True):
        path = path.replace(f"<{unit}>", moment.strftime(form))

    found = [prefix for prefix in prefixes(pattern, begin, end) if path.startswith(prefix)]

    assert pattern.matches(path)
    assert len(found) == 1


def naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


@given(st.sampled_from(PATTERNS), moments, st.timedeltas(timedelta(0), timedelta(days=3650)))
def test_the_number_of_prefixes_has_a_bound(text: str, begin: datetime, length: timedelta) -> None:
    found = list(prefixes(file_pattern(text), begin, begin + length))

    # At each end at most a quarter of each unit one by one; years in between.
    edges = 2 * (12 // 4 + 31 // 4 + 24 // 4 + 60 // 4)
    whole = 2 * (12 + 31 + 24) + 11
    assert 1 <= len(found) <= (edges + whole if file_pattern(text).in_order else 1000)
    assert len(set(found)) == len(found)


@given(
    st.sampled_from([one for one in PATTERNS if file_pattern(one).in_order]),
    moments,
    st.timedeltas(timedelta(0), timedelta(days=900)),
)
def test_prefixes_of_dates_in_order_are_in_the_order_of_their_bytes(
    text: str, begin: datetime, length: timedelta
) -> None:
    found = listed(text, begin, begin + length)

    assert found == sorted(found)


def test_a_look_back_over_a_day_takes_two_prefixes() -> None:
    found = listed(PATTERNS[1], at("2026-11-22T15:37:00"), at("2026-11-23T15:37:00"))

    assert found == ["2026/11/22/part-", "2026/11/23/part-"]


def test_few_parts_of_a_unit_are_listed_one_by_one_and_many_at_once() -> None:
    minutes = PATTERNS[0]

    assert listed(minutes, at("2026-11-23T10:58:30"), at("2026-11-23T11:01:10")) == [
        "2026/11/23/10/58/part-",
        "2026/11/23/10/59/part-",
        "2026/11/23/11/00/part-",
        "2026/11/23/11/01/part-",
    ]
    assert listed(minutes, at("2026-11-23T10:20:00"), at("2026-11-23T10:50:00")) == [
        "2026/11/23/10/"
    ]


def test_whole_units_are_listed_whole() -> None:
    found = listed(PATTERNS[1], at("2024-12-31T00:00:00"), at("2026-02-01T12:00:00"))

    assert found == ["2024/12/31/part-", "2025/", "2026/01/", "2026/02/01/part-"]


def test_without_a_beginning_or_a_date_the_common_start_is_listed() -> None:
    assert listed("in/<yyyy>/x", None, at("2026-11-23")) == ["in/"]
    assert listed("in/part-*.json", at("2026-11-22"), at("2026-11-23")) == ["in/part-"]


def test_dates_in_another_order_are_listed_day_by_day() -> None:
    found = listed(PATTERNS[5], at("2026-10-31"), at("2026-11-02"))

    assert found == [
        "export_31.10.2026_",
        "export_01.11.2026_",
        "export_02.11.2026_",
    ]
    assert listed(PATTERNS[5], at("2010-01-01"), at("2026-11-02")) == ["export_"]


def test_nothing_is_listed_of_a_time_that_ends_before_it_begins() -> None:
    assert listed(PATTERNS[1], at("2026-11-24"), at("2026-11-23")) == []


@given(moments, st.sampled_from(list(UNITS)))
def test_units_follow_each_other_without_a_gap(moment: datetime, unit: str) -> None:
    start = begun(moment, unit)
    after = following(start, unit)

    assert start <= moment < after
    assert begun(after, unit) == after
    assert list(units(start, after, unit)) == [start, after]
