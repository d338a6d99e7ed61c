"""Layouts that are well-formed and still wrong."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from polynya.model.checks import task_problems
from polynya.model.config.task import StorageTask, resolved

COLUMNS = {"id": "bigint", "at": "timestamp", "day": "date", "x": "double", "tags": "array<string>"}


def a_task(**settings: Any) -> StorageTask:
    dataset = {"name": "users", "keys": ["id"], "sequence_by": ["at"], "columns": COLUMNS}
    document = {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": "users",
        "schema": "shop",
        "landing": {"path": "users", "format": "json"},
        "datasets": [{**dataset, **settings}],
    }
    return StorageTask.model_validate(document)


def problems(**settings: Any) -> list[tuple[str, str, str]]:
    found = task_problems(a_task(**settings))
    return [
        (".".join(map(str, one.path[2:])), one.error.code[-3:], one.error.message) for one in found
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"partition_by": ["day(at)", "bucket(16, id)", "later"]},
        {"sort_by": ["at desc", "id"], "target_file_size": "256MB"},
        {"sort_by": ["zorder(id, at)"], "partition_by": []},
        {"retention": {"column": "day", "keep": "90d"}},
    ],
)
def test_a_good_layout_has_no_problem(settings: dict[str, Any]) -> None:
    assert problems(**settings) == []
    assert problems() == []


@pytest.mark.parametrize(
    ("settings", "path", "code", "says"),
    [
        ({"partition_by": ["day(at)", "hour(at)"]}, "partition_by", "041", "by time more than"),
        ({"partition_by": ["id", "id"]}, "partition_by", "041", "named twice"),
        ({"partition_by": ["x"]}, "partition_by.0", "042", "never exactly equal"),
        ({"partition_by": ["hour(day)"]}, "partition_by.0", "042", "`hour` is for timestamp"),
        ({"partition_by": ["day(id)"]}, "partition_by.0", "042", "not for bigint"),
        ({"sort_by": ["tags"]}, "sort_by.0", "042", "array<string>"),
        ({"sort_by": ["id", "zorder(at, day)"]}, "sort_by", "041", "cannot be combined"),
        ({"sort_by": ["id", "id desc"]}, "sort_by", "041", "named twice"),
        (
            {"partition_by": ["day"], "except_columns": ["day"]},
            "partition_by.0", "041", "is excluded",
        ),
        ({"retention": {"column": "id", "keep": "90d"}}, "retention.column", "043", "not bigint"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(
    settings: dict[str, Any], path: str, code: str, says: str
) -> None:
    ((where, number, message),) = problems(**settings)

    assert (where, number) == (path, code)
    assert says in message


@pytest.mark.parametrize(
    "settings",
    [
        {"partition_by": "day(at)"},
        {"partition_by": [7]},
        {"partition_by": ["day(at"] * 2},
        {"partition_by": [f"c{n}" for n in range(9)]},
        {"target_file_size": "1KB"},
        {"retention": {"column": "at"}},
        {"retention": {"column": "at", "keep": "0s"}},
        {"retention": "90d"},
    ],
)
def test_what_has_another_form_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        a_task(**settings)


def test_a_dataset_takes_the_layout_of_its_defaults_back() -> None:
    document = a_task().model_dump(by_alias=True, exclude_none=True)
    document["defaults"] = {"partition_by": ["day(at)"], "sort_by": ["id"]}
    document["datasets"] = [{**document["datasets"][0], "partition_by": []}]
    task = StorageTask.model_validate(document)

    layout = resolved(task, task.datasets[0]).layout

    assert layout.partition_by == ()
    assert [str(one) for one in layout.sort_by] == ["id"]
