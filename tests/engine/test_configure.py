"""A changed configuration against real tables: planned from the catalog, carried out, then run."""

from __future__ import annotations

import pytest

from polynya.engine.commands.plan_project import ProjectPlan
from polynya.engine.commands.rebuild import configure
from polynya.lake.apply.apply import Applier
from polynya.lake.apply.fast import FastApplier
from polynya.model.errors import OperationError
from tests.lab.chosen import slow
from tests.lab.events import land, upsert
from tests.lab.lab import Lab, clear, drop, put
from tests.lab.plans import plan
from tests.lake.apply.plain import PlainApplier


def kinds(found: ProjectPlan) -> list[str]:
    return [change.kind for change in found.changes()]


@pytest.mark.slow
def test_tables_follow_a_changed_configuration(lab: Lab) -> None:
    users = lab.feed(history=False, except_columns=["op", "seq", "at", "city"])
    assert kinds(plan(lab, users.task)) == ["new_dataset"]
    users.copy(put(1, 1, name="Ana", city="Leon"), put(2, 1, name="Ben", city="Leon"))
    assert not plan(lab, users.task).has_changes

    users.configure(history=True, except_columns=["op", "seq", "at"])
    users.more = {"name": "people", "views": {"changes": "_log"}}
    found = plan(lab, users.task)
    assert kinds(found) == ["task", "columns_included", "history_on", *["views"] * 3]
    assert configure(lab.context(), found.datasets[0])

    assert not plan(lab, users.task).has_changes
    assert users.history("id", "city") == [(1, None, "I", 1.0, None), (2, None, "I", 1.0, None)]
    views = {row[1] for row in lab.rows(f"SHOW VIEWS IN {lab.schema}")}
    stored = {"users__current_stored", "users__history_stored"}
    assert views == {"users", "users__history", "users_log", *stored}
    users.apply(put(1, 2, name="Ana", city="Tepic"))
    assert users.current("id", "city") == [(1, "Tepic"), (2, None)]
    assert len(users.history("id")) == 3

    users.configure(keys=["name"])
    (change,) = plan(lab, users.task).changes()
    assert (change.kind, change.action) == ("keys", "decide")


@pytest.mark.parametrize("applier", [FastApplier(), slow(PlainApplier())], ids=["fast", "plain"])
def test_an_excluded_column_keeps_what_is_stored(lab: Lab, applier: Applier) -> None:
    everything = ["op", "seq", "at"]
    users = lab.feed(except_columns=everything)
    users.applier = {"applier": applier}
    users.apply(put(1, 1, name="Ana", city="Leon"), put(4, 1, name="Dan", city="Leon"))
    users.copy(put(1, 2, name="Anna", city="Tepic"), put(2, 2, name="Ben", city="Tula"))

    users.configure(except_columns=[*everything, "city"])
    (planned,) = plan(lab, users.task).datasets
    assert configure(lab.context(), planned)
    assert users.columns() == ["id", "name"]
    users.apply(put(1, 3, name="Anne", city="Oaxaca"), put(3, 3, name="Cid", city="Leon"))
    # A truncate is applied in the commit that copies it.
    users.apply(put(5, 4, name="Eve", city="Leon"), clear(2))
    users.configure(except_columns=everything)
    users.apply(put(6, 6, name="Fay", city="Lima"))

    assert users.current("id", "city") == [
        (1, None),
        (2, "Tula"),
        (3, None),
        (5, None),
        (6, "Lima"),
    ]
    versions = [line[:3] for line in users.history("id", "city")]
    assert [city for key, city, _ in versions if key == 1] == ["Leon", "Tepic", None]
    assert [city for key, city, _ in versions if key == 4] == ["Leon", "Leon"]


@pytest.mark.slow
def test_deletes_of_a_changed_mode(lab: Lab) -> None:
    users = lab.feed(history=False, delete_mode="soft")
    users.apply(put(1, 1, name="Ana"), put(2, 1, name="Ben"), put(3, 1, name="Cid"))
    users.apply(drop(1, 2))
    users.configure(delete_mode="hard")
    (planned,) = plan(lab, users.task).datasets
    assert configure(lab.context(), planned)

    assert users.current("id", "name") == [(2, "Ben"), (3, "Cid")]
    users.apply(drop(2, 3))
    assert users.current("id", "name") == [(3, "Cid")]
    users.configure(delete_mode="soft")
    users.apply(drop(3, 4))
    assert users.current("id", "hdr__deleted") == [(1, True), (3, True)]


def test_rows_of_another_order_are_refused(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ana"))
    users.configure(sequence_by=["at"])

    with pytest.raises(OperationError, match="have no common order"):
        users.copy(put(1, 2, name="Ben"))

    users.configure(sequence_by=["seq"])
    users.apply()
    assert users.current("id", "name") == [(1, "Ben")]


def test_a_capture_under_another_name_takes_its_tables_along(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, upsert(1, 1, name="Ana"))
    capture.run()
    assert not plan(lab, capture.task).has_changes
    gone = plan(lab).unconfigured
    assert {one.name for one in gone} == {
        f"{lab.schema}_internal.{name}_internal"
        for name in ("users", f"{lab.schema}_task__landing")
    }

    renamed = capture.task.model_copy(update={"name": "renamed"})
    found = plan(lab, renamed)
    assert (kinds(found), found.undiscovered) == (["task"], ("renamed",))
    assert [one.task for one in found.unconfigured] == [capture.task.name]
    assert configure(lab.context(), found.datasets[0])

    both = plan(lab, capture.task, renamed)
    assert [change.action for change in both.changes()] == ["decide"]
    assert not configure(lab.context(), both.datasets[0])
