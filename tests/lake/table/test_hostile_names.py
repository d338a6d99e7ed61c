"""Columns, keys and values that look like SQL are data."""

from __future__ import annotations

import pytest

from tests.lab.chosen import slow
from tests.lab.lab import Lab, drop, put

NAMES = [
    "with space",
    "dot.ted",
    "back`quote",
    "quote'd",
    'double"quote',
    "a; DROP TABLE users; --",
    "select",
    "Größe 日本",
    "back\\slash",
    "${env:HOME}",
]
VALUES = ["'; DROP TABLE users; --", "\\' OR 1=1 --", "`x`", "${spark.app.name}", "{{x}}", "\\", ""]


def quoted(name: str) -> str:
    """A back-quoted identifier."""
    return "`" + name.replace("`", "``") + "`"


def test_column_names_of_every_kind(lab: Lab) -> None:
    users = lab.feed(coalesce_unchanged=True)
    values = {name: f"v{number}" for number, name in enumerate(NAMES)}

    users.apply(put(1, 1, **values))
    users.copy(put(1, 2, **values | {NAMES[0]: "new"}))
    before = users.current(*map(quoted, NAMES))
    users.apply(put(1, 0, **values))

    assert before == [("new", *list(values.values())[1:])]
    assert users.current(*map(quoted, NAMES)) == before
    assert len(users.history("id")) == 2


@pytest.mark.parametrize("key", ["a`b.c'd", slow("select"), slow("na me")])
def test_key_columns_of_every_kind(lab: Lab, key: str) -> None:
    users = lab.feed(keys=[key], delete_mode="soft")

    def row(value: str, seq: int) -> dict[str, object]:
        return {key: value, **{k: v for k, v in put(0, seq).items() if k != "id"}}

    users.apply(*(row(value, 1) for value in VALUES))
    users.copy({**row(VALUES[0], 2), "op": "D"}, row(VALUES[1], 2))
    before = users.current(quoted(key), "hdr__deleted")
    users.apply()

    assert before == users.current(quoted(key), "hdr__deleted")
    assert sorted(value for value, _ in before) == sorted(VALUES)
    assert [value for value, deleted in before if deleted] == [VALUES[0]]


def test_values_come_back_as_they_went_in(lab: Lab) -> None:
    users = lab.feed()
    users.apply(*(put(number, 1, name=value) for number, value in enumerate(VALUES)))

    users.apply(*(put(number, 2, name=value) for number, value in enumerate(reversed(VALUES))))

    assert users.current("id", "name") == list(enumerate(reversed(VALUES)))


def test_a_source_column_may_not_pass_for_one_of_ours(lab: Lab) -> None:
    users = lab.feed()

    users.apply(put(1, 1, hdr__partition="current"), put(2, 2, name="Ben"), drop(3, 3, __op="I"))

    assert users.current("id", "name") == [(2, "Ben")]
    assert [rule for *_, rule in users.rejected()] == ["bad_column", "bad_column"]


@pytest.mark.parametrize("text", ["op = 'D' AND lower(name) LIKE '%''%'", "`na me`['k'] = \"D\""])
def test_conditions_over_columns_that_are_not_there(lab: Lab, text: str) -> None:
    users = lab.feed(apply_as_deletes=text, optional_columns=["name", "na me", "op"])

    users.apply(put(1, 1, x="'"))

    assert users.current("id") == [(1,)]
