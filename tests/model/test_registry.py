"""The formats that a task may name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from polynya.model.config.settings import Landing
from polynya.model.formats import FormatRules, add_rules, all_rules, remove_rules, rules_of

TOY = FormatRules("toy")


@pytest.fixture
def toy() -> Iterator[None]:
    add_rules(TOY)
    yield
    remove_rules("toy")


def test_a_task_may_name_a_format_as_long_as_it_is_registered(toy):
    assert Landing(path="t", format="toy").format == "toy"

    remove_rules("toy")

    with pytest.raises(ValidationError, match=r"Input should be 'json'.* or 'stream'"):
        Landing(path="t", format="toy")
    add_rules(TOY)


@pytest.mark.parametrize("name", ["", "JSON", 5, None, ["json"]])
def test_a_name_that_no_format_has_is_refused(name):
    with pytest.raises(ValidationError) as refused:
        Landing(path="t", format=name)
    assert [error["type"] for error in refused.value.errors()] == ["literal_error"]


@pytest.mark.parametrize("name", ["toy", "json"])
def test_a_name_is_taken_once(toy, name):
    with pytest.raises(ValueError, match=f"a format '{name}' already"):
        add_rules(FormatRules(name))


def test_the_formats_of_polynya_stay(toy):
    remove_rules("json")
    assert rules_of("json") in all_rules()


def test_a_table_goes_on_with_a_format_whose_events_are_ordered_by_the_same_columns():
    follows = {
        (before.name, now.name)
        for before in all_rules()
        for now in all_rules()
        if before is not now and now.may_follow(before)
    }
    native = ["json", "csv", "parquet", "avro", "orc", "excel"]
    assert follows == {(one, other) for one in native for other in native if one != other}
