"""Identifiers, paths, durations and sizes: what passes, and that nothing hostile does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.model.config.fields import format_duration, format_size, parse_duration, parse_size
from polynya.model.errors import ConfigError
from polynya.model.names import check_name, column_problem, quote, quote_path, relative_path_problem


def test_quoting_doubles_back_quotes():
    assert quote("a`b") == "`a``b`"
    assert quote_path("shop", "users") == "`shop`.`users`"


@given(st.text())
def test_a_quoted_name_has_no_lone_back_quote_inside(name):
    inside = quote(name)[1:-1]

    assert inside.replace("``", "") == name.replace("`", "")


@pytest.mark.parametrize("name", ["users", "_a", "A1", "x" * 128])
def test_plain_names_pass(name):
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "1a", "a b", "a;drop table x", "../x", "a.b", "ä", "a\n", "x" * 129, "`a`", "a\0", "a-b"],
)
def test_hostile_names_are_an_error(name):
    with pytest.raises(ConfigError) as caught:
        check_name(name, what="schema", where="tasks/a.yml:1:1")

    assert caught.value.code == "POLYNYA-CFG-010"
    assert "\n" not in caught.value.message
    assert "\0" not in caught.value.message


@pytest.mark.parametrize("name", ["", "a\tb", "HDR__operation", "__file", "x" * 256])
def test_reserved_and_unprintable_column_names_are_named(name):
    assert column_problem(name)


@pytest.mark.parametrize("name", ["user id", "a.b", "größe", "`x`", "select", "_hdr"])
def test_any_other_column_name_is_fine(name):
    assert column_problem(name) is None


@pytest.mark.parametrize("path", ["users", "a/b/*.json", "load/**", ".", "a..b/c", "2026-01-01"])
def test_paths_below_a_root_pass(path):
    assert relative_path_problem(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a/..",
        "a\\b",
        "C:/x",
        "s3://b/x",
        "~/x",
        "a\0b",
        "a\n",
    ],
)
def test_paths_that_could_leave_their_root_do_not(path):
    assert relative_path_problem(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30d", timedelta(days=30)),
        ("2h", timedelta(hours=2)),
        ("15m", timedelta(minutes=15)),
        ("500ms", timedelta(milliseconds=500)),
        ("1w", timedelta(days=7)),
        ("0s", timedelta(0)),
    ],
)
def test_durations_are_read_and_written(text, expected):
    assert parse_duration(text) == expected
    assert parse_duration(format_duration(expected)) == expected


@pytest.mark.parametrize(
    "text", ["", "30", "d", "-1d", "1.5h", "1y", "999999999999w", "٣d", "1d\n"]
)
def test_what_is_no_duration_is_an_error(text):
    with pytest.raises(ValueError, match="`"):
        parse_duration(text)


@given(st.integers(0, 100 * 365 * 24 * 3600 * 1000).map(lambda ms: timedelta(milliseconds=ms)))
def test_every_duration_survives_its_text(value):
    assert parse_duration(format_duration(value)) == value


@pytest.mark.parametrize(
    ("text", "expected"), [("64MB", 64 * 2**20), ("64 MiB", 64 * 2**20), ("10", 10), ("1KB", 1024)]
)
def test_sizes_are_read(text, expected):
    assert parse_size(text) == expected


@given(st.integers(0, 2**45))
def test_every_size_survives_its_text(value):
    assert parse_size(format_size(value)) == value


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1.5MB", "1PB", "1mb\n"])
def test_what_is_no_size_is_an_error(text):
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)
