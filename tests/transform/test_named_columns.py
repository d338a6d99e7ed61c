"""Columns that settings name: which are unknown, which of them stop, what was meant."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.model.config.task import StorageTask, resolved
from polynya.transform.named_columns import UnknownColumn, named_columns, unknown_columns

MET = ("id", "name", "amount", "seq", "at", "op")


def dataset(*, defaults: dict[str, Any] | None = None, form: str = "json", **own: Any) -> Any:
    settings = {"name": "users", "keys": ["id"], "sequence_by": ["seq"], **own}
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "users",
            "schema": "shop",
            "landing": {"path": "users", "format": form},
            "defaults": defaults or {},
            "datasets": [settings],
        }
    )
    return resolved(task, task.datasets[0])


@pytest.mark.parametrize(
    ("setting", "value", "column", "meant"),
    [
        ("keys", ["idd"], "idd", "id"),
        ("sequence_by", ["sec"], "sec", "seq"),
        ("timestamp", "att", "att", "at"),
        ("apply_as_deletes", "opp = 'D'", "opp", "op"),
        ("apply_as_truncates", "other.op = 'T'", "other", None),
        ("ignore_null_updates", ["nam"], "nam", "name"),
        ("except_columns", ["opp"], "opp", "op"),
        ("columns", {"amout": "double"}, "amout", "amount"),
        ("columns", [{"name": "n", "expression": "upper(naem)"}], "naem", "name"),
        ("columns", [{"name": "n", "expression": "amounts[].sum"}], "amounts", "amount"),
        ("where", "nam = 'x'", "nam", "name"),
        ("track_history_columns", ["naem"], "naem", "name"),
        ("track_history_except", ["ammount"], "ammount", "amount"),
    ],
)
def test_a_name_that_no_column_has_stops_and_the_similar_one_is_offered(
    setting: str, value: Any, column: str, meant: str | None
) -> None:
    found = unknown_columns(dataset(**{setting: value}), MET)

    assert found == [UnknownColumn(setting, column, meant, stops=True)]


def test_what_was_met_or_accepted_is_not_unknown() -> None:
    users = dataset(timestamp="at", except_columns=["op", "gone"], columns={"amount": "double"})

    assert unknown_columns(users, MET, accepted=["gone"]) == []


def test_a_column_that_may_come_later_is_only_told() -> None:
    users = dataset(apply_as_deletes="removed", optional_columns=["removed"])

    assert unknown_columns(users, MET) == [
        UnknownColumn("apply_as_deletes", "removed", None, stops=False)
    ]


def test_lists_for_many_datasets_only_warn_where_a_typing_error_is_likely() -> None:
    users = dataset(defaults={"except_columns": ["opp", "password"], "timestamp": "when"})

    assert unknown_columns(users, MET) == [
        UnknownColumn("timestamp", "when", None, stops=True),
        UnknownColumn("except_columns", "opp", "op", stops=False),
    ]


@pytest.mark.parametrize(
    ("column", "meant", "stops"),
    [("oop", "op", True), ("nme", "name", True), ("gone", None, False), ("mount", "amount", True),
     ("game", "name", False)],
)  # fmt: skip
def test_in_a_stream_only_what_looks_like_a_typing_error_stops(
    column: str, meant: str | None, stops: bool
) -> None:
    users = dataset(form="stream", sequence_by=["seq"], apply_as_deletes=f"{column} = 'x'")

    assert unknown_columns(users, MET) == [
        UnknownColumn("apply_as_deletes", column, meant, stops=stops)
    ]


def test_what_a_mapping_makes_is_not_meant_by_what_it_reads() -> None:
    columns = [{"name": "user_id", "expression": "userid"}]
    users = dataset(form="stream", sequence_by=["seq"], keys=["user_id"], columns=columns)

    assert unknown_columns(users, ("seq", "user_id")) == [
        UnknownColumn("columns", "userid", None, stops=False)
    ]


def test_a_full_load_need_not_have_what_only_events_have() -> None:
    users = dataset(
        timestamp="when",
        apply_as_deletes="action = 'D'",
        except_columns=["action"],
        columns={"when": "timestamp", "amout": "double"},
    )

    assert {one.column for one in named_columns(users, of_load=True)} == {"id", "amout"}
    assert unknown_columns(users, MET, of_load=True) == [
        UnknownColumn("columns", "amout", "amount", stops=True)
    ]


def test_where_a_truncate_may_come_first_only_a_similar_name_stops() -> None:
    users = dataset(apply_as_truncates="op = 'T'")

    assert unknown_columns(users, ("op", "seq")) == []
    assert unknown_columns(users, ("op", "seq", "idd")) == [
        UnknownColumn("keys", "id", "idd", stops=True)
    ]


def test_order_and_time_of_a_capture_may_come_from_beside_the_columns() -> None:
    users = dataset(form="debezium", sequence_by=["lsn"], timestamp="ts_ms")

    assert [one.setting for one in named_columns(users)] == ["keys"]
