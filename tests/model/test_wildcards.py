"""Globs and wildcards match what they always did, in a time that grows with the text."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.capture.mysql.catalog import matching
from polynya.capture.postgresql.tables import chosen
from polynya.formats.debezium.ddl import _CREATE
from polynya.formats.files import glob_pattern
from polynya.model.config.capture import matches as takes_table
from polynya.model.config.stream_landing import matches as takes_topic
from polynya.model.patterns import file_pattern


def every_way(glob: str, path: str) -> bool:
    """Whether a path has the form of a glob, by trying all ways."""
    if not glob:
        return not path
    if glob.startswith("**/"):
        rest, ends = glob[3:], [0, *(at + 1 for at, one in enumerate(path) if one == "/")]
        return any(every_way(rest, path[end:]) for end in ends)
    if glob.startswith("**"):
        return any(every_way(glob[2:], path[at:]) for at in range(len(path) + 1))
    if glob.startswith("*"):
        most = path.find("/") if "/" in path else len(path)
        return any(every_way(glob[1:], path[at:]) for at in range(most + 1))
    return (path[:1] not in {"", "/"} and glob[0] == "?" and every_way(glob[1:], path[1:])) or (
        path[:1] == glob[0] and every_way(glob[1:], path[1:])
    )


GLOBS = st.lists(
    st.sampled_from(["a", "b", "/", "*", "*", "**", "**/", "/**/", "?", "ab"]), max_size=9
)
PATHS = st.text(st.sampled_from("aab/"), max_size=12)


@given(GLOBS.map("".join), PATHS)
@settings(max_examples=1500)
def test_a_glob_matches_what_some_way_of_reading_it_matches(glob: str, path: str) -> None:
    assert (glob_pattern(glob).fullmatch(path) is not None) == every_way(glob, path)


@given(st.text(st.sampled_from("ab*%"), max_size=9), st.text(st.sampled_from("aab"), max_size=12))
@settings(max_examples=500)
def test_names_with_wildcards_match_what_some_way_of_reading_them_matches(
    pattern: str, name: str
) -> None:
    plain = re.fullmatch(".*".join(re.split("[%*]", pattern)), name) is not None

    assert takes_table(pattern, name) == plain
    assert matching([name], [pattern], []) == ([name] if plain else [])
    assert chosen([name], [pattern], []) == ({name} if plain else set())


@given(
    st.lists(st.sampled_from(["a", "-", "*", "/", "2"]), max_size=6),
    st.text(st.sampled_from("a-/2026"), max_size=14),
)
@settings(max_examples=800)
def test_a_date_is_read_where_the_last_reading_has_it(parts: list[str], path: str) -> None:
    text = "x" + "".join(parts).replace("**", "*") + "<yyyy>*"
    while "//" in text or "**" in text:
        text = text.replace("//", "/").replace("**", "*")
    form = "".join(
        {"*": "[^/]*", "<yyyy>": "([0-9]{4})"}.get(one) or re.escape(one)
        for one in re.findall(r"<yyyy>|\*|[^*<]", text)
    )
    found = re.fullmatch(form, f"x{path}")

    date = file_pattern(text).date(f"x{path}")

    valid = found is not None and int(found[1]) > 0
    assert (None if date is None else date.year) == (int(found[1]) if found and valid else None)


@pytest.mark.parametrize(
    "glob",
    [
        "*a" * 40 + "b",
        "**/" + "*a" * 40 + "b",
        "**a" * 40 + "b",
        "**/*a*a*a*a*a*a*a*a*a*a/**/*b*b*b*b*b*b*b*b/**/*.c",
        "*[a-c]*?*a*a*a*a*a*a*a*a*b",
        "a**/" * 3 + "b",
    ],
)
def test_the_time_of_a_glob_grows_with_the_name_only(glob: str) -> None:
    begin = time.process_time()

    for path in ("a" * 1000, "a/" * 500, "a" * 500 + "/" + "a" * 500, "ab" * 500):
        glob_pattern(glob).fullmatch(path)

    assert time.process_time() - begin < 2


def test_the_time_of_names_with_wildcards_grows_with_the_name_only() -> None:
    begin, long = time.process_time(), "a" * 1000
    stars, percents = "*a" * 40 + "b", "%a" * 40 + "b"

    takes_table(stars, long)
    takes_topic(percents, long)
    matching([long], [stars], [percents])
    chosen([long], [stars], [percents])
    file_pattern(stars).matches(long)
    file_pattern(f"{stars}/<yyyy>").below(f"{long}/")
    file_pattern("*<yyyy>" + "*2" * 40 + "x").date("2" * 1000)
    _CREATE.match("/**/" * 500 + "x")

    assert time.process_time() - begin < 2


def test_a_date_that_stands_twice_is_read_with_few_wildcards_only() -> None:
    with pytest.raises(ValueError, match="a placeholder stands twice"):
        file_pattern("*-*-*<yyyy>/<yyyy>")
    assert file_pattern("<yyyy>/*-*<yyyy>.json").matches("2026/a-b2026.json")
    assert not file_pattern("<yyyy>/*-*<yyyy>.json").matches("2026/a-b2025.json")
