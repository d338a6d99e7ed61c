"""Which topics and streams are taken, and what their landed tables are called."""

from __future__ import annotations

import pytest

from polynya.model.config.stream_landing import Into, landed_table
from polynya.streams.source import by_table, named, taken

EACH = Into(each="topic")


@pytest.mark.parametrize(
    ("pattern", "takes"),
    [
        ("clicks", ["clicks"]),
        ("orders-%", ["orders-", "orders-eu", "orders-us.v1"]),
        ("%", ["clicks", "orders", "orders-", "orders-eu", "orders-us.v1"]),
        ("%.v1", ["orders-us.v1"]),
        ("o%s", ["orders"]),
        ("order.", []),
    ],
)
def test_a_wildcard_stands_for_any_text_and_nothing_else_is_special(pattern, takes):
    there = ["orders-eu", "clicks", "orders-us.v1", "orders", "orders-"]

    assert list(taken([pattern], there)) == takes


def test_topics_that_are_named_are_those_without_a_wildcard():
    assert named(["a", "b-%"]) == ("a",)


@pytest.mark.parametrize(
    ("topic", "table"), [("Clicks", "clicks"), ("a-b.c d", "a_b_cd"), ("2024_x", "2024_x")]
)
def test_a_landed_table_is_named_by_rule(topic, table):
    assert landed_table(topic) == table


def test_two_topics_that_want_one_table_are_told_and_the_first_keeps_it():
    tables, [error] = by_table(EACH, ["a.b", "a-b", "c"], "task in")

    assert tables == {"a_b": ("a-b",), "c": ("c",)}
    assert error.code == "POLYNYA-STR-012"
    assert "`a-b` and `a.b` both have" in error.message


def test_all_topics_land_in_one_table_if_it_is_named():
    assert by_table(Into(table="all"), ["b", "a"], "x") == ({"all": ("a", "b")}, [])
    assert by_table(Into(table="all"), [], "x") == ({}, [])
