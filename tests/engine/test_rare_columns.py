"""Columns of a stream that no message has had yet: they come, and nothing waits for them."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.model.errors import ConfigError
from polynya.observe.engine import ColumnUnknown
from tests.lab.lab import Lab
from tests.lab.landed import LandedTable

#: Of the columns that it names, pings have `type` and `user` only.
VISITS: dict[str, Any] = {
    "mode": "merge",
    "columns": [
        {"name": "id", "expression": "user.id", "type": "bigint", "key": 1},
        {"name": "nth", "expression": "coalesce(ordinal(items[]), 0)", "type": "int", "key": 2},
        {"name": "sku", "expression": "items[].sku"},
        {"name": "price", "expression": "2 * items[].price"},
        {"name": "city", "expression": "to_upper(trim(place.city))"},
    ],
    "soft_delete": "gone",
    "partition_by": ["truncate(1, city)"],
    "sort_by": ["price"],
}


def ping(user: int, **more: Any) -> dict[str, Any]:
    return {"type": "ping", "user": {"id": user}, **more}


def test_a_column_that_no_message_has_had_yet_is_null_with_a_warning(lab: Lab) -> None:
    visits = LandedTable(lab, VISITS)
    visits.take(ping(1), ping(2))
    told = [one for one in lab.events if isinstance(one, ColumnUnknown)]
    visits.take(
        {
            **ping(3),
            "items": [{"sku": "a", "price": 1.25}, {"sku": "b"}],
            "place": {"city": "oslo"},
        },
        ping(1, gone=True),
    )

    assert {(one.setting, one.column) for one in told} == {
        ("apply_as_deletes", "gone"), ("columns", "items"), ("columns", "place"),
    }  # fmt: skip
    assert visits.look.current("id", "nth", "sku", "price", "city", "hdr__deleted") == [
        (1, 0, None, None, None, True),
        (2, 0, None, None, None, False),
        (3, 1, "a", 2.5, "OSLO", False),
        (3, 2, "b", None, "OSLO", False),
    ]
    assert visits.look.rejected() == []


def test_a_name_like_one_that_came_is_a_typing_error(lab: Lab) -> None:
    visits = LandedTable(lab, {**VISITS, "soft_delete": "gonne"})
    visits.land(ping(1, gone=None))

    with pytest.raises(ConfigError, match="did you mean `gone`") as caught:
        visits.run()
    assert caught.value.code == "POLYNYA-CFG-030"
    assert "optional_columns" in str(caught.value.fix)

    visits.transform["optional_columns"] = ["gonne"]
    visits.run()
    assert visits.look.current("id") == [(1,)]
