"""What `replace_elements` needs is checked by name, before anything is read."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.model.checks import dataset_problems
from polynya.model.config.dataset import contradicted, recorded
from polynya.model.config.mapping import MappedColumn
from polynya.model.config.task import StorageTask, resolved
from polynya.transform.mapping import flattened

ORDER = {"name": "order_id", "expression": "id", "key": 1}
LINE = {"name": "line", "expression": "lines[].id", "key": 2}


def task_of(*columns: dict[str, Any], format: str = "stream", **more: Any) -> StorageTask:
    own = {"name": "t", "columns": list(columns), "replace_elements": True, **more}
    head = {"apiVersion": "polynya/v1", "kind": "storage", "name": "t", "schema": "s"}
    landing = {"path": "in", "format": format}
    return StorageTask.model_validate({**head, "landing": landing, "datasets": [own]})


def problems(task: StorageTask) -> list[tuple[str, str]]:
    """The setting that is wrong, and the code."""
    found = dataset_problems(task, task.datasets[0], ())
    return [(str(problem.path[-1]), problem.error.code) for problem in found]


def test_keys_of_the_record_and_of_the_element_are_enough() -> None:
    task = task_of(ORDER, LINE)

    assert problems(task) == []
    assert resolved(task, task.datasets[0]).kept.replaced_within == ("order_id",)


@pytest.mark.parametrize(
    ("task", "wrong"),
    [
        (task_of(ORDER, {**LINE, "key": None}), "replace_elements"),
        (task_of({**ORDER, "key": None}, {**LINE, "key": 1}), "replace_elements"),
        (task_of(ORDER, LINE, ignore_null_updates=True), "replace_elements"),
        (task_of(ORDER, LINE, where="lines[].id > 1"), "where"),
        (task_of(ORDER, LINE, apply_as_deletes="lines[].gone"), "apply_as_deletes"),
        (task_of(ORDER, LINE, apply_as_truncates="lines[].gone"), "apply_as_truncates"),
    ],
)
def test_what_it_lacks_is_named(task: StorageTask, wrong: str) -> None:
    assert problems(task) == [(wrong, "POLYNYA-MAP-008")]


def test_it_is_for_streams_in_merge_mode() -> None:
    files = task_of(ORDER, LINE, format="json", sequence_by=["at"])
    columns = [{**column, "key": None} for column in (ORDER, LINE)]

    assert problems(files) == [("replace_elements", "POLYNYA-CFG-019")]
    assert problems(task_of(*columns, mode="append_only")) == [
        ("replace_elements", "POLYNYA-CFG-016")
    ]


@pytest.mark.parametrize(
    ("expression", "is_element"),
    [
        ("lines[].id", True),
        ("ordinal( lines [ ] )", True),
        ("concat(id, '[]')", False),
        ("concat(id, 'it''s [] \\' []')", False),
        ("`a[]`.b", False),
        ("lines[0].id", False),
    ],
)
def test_an_expression_over_elements_is_told_as_where_rows_are_made(
    expression: str, *, is_element: bool
) -> None:
    column = MappedColumn(name="c", expression=expression)

    assert column.reads_elements is is_element
    assert bool(flattened(expression).paths) is is_element


def test_a_table_with_rows_keeps_its_setting_also_one_that_is_older() -> None:
    task = task_of(ORDER, LINE)
    replacing = resolved(task, task.datasets[0])
    plain = task_of(ORDER, LINE, replace_elements=None)
    keeping = resolved(plain, plain.datasets[0])
    before = recorded(replacing, {}, has_rows=False)
    older = {name: value for name, value in before.items() if name != "replace_elements"}

    assert contradicted(replacing, before) == []
    assert contradicted(keeping, before) == ["replace_elements"]
    assert contradicted(replacing, older) == ["replace_elements"]
    assert contradicted(keeping, older) == []
    assert recorded(replacing, older, has_rows=True)["replace_elements"] == []
