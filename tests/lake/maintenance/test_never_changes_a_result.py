"""No action changes what the views show: not during it, and not if it dies at a boundary."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya.lake.maintenance.base import ActionLimits
from polynya.lake.maintenance.orphans import Orphans, find_orphans, remove_orphan_files
from polynya.lake.read.verify import verify
from polynya.model.config.maintenance import ACTIONS as NAMES
from tests.lab.lab import Lab, drop, put
from tests.lab.owned import owned, step
from tests.lake.maintenance.worn import ACTIONS, BOUNDARIES, YOUNG, seen, worn


class Dead(BaseException):
    """The process ends here: nothing that handles errors runs."""


def boundaries() -> Iterator[Any]:
    """Each boundary of each action: before it, after it, and amid files that are deleted."""
    for action, several in BOUNDARIES.items():
        for (module, name), times in several:
            moments = ["before", "after", *(["amid"] if name == "delete" else [])]
            for number in range(1, times + 1):
                for moment in moments:
                    case = action, module, name, number, moment
                    yield pytest.param(*case, id=f"{action}-{moment}-{name}-{number}")


def test_every_action_is_tried() -> None:
    assert set(ACTIONS) == set(BOUNDARIES) == set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_views_show_the_same_before_during_and_after(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    users = worn(lab, action)
    wanted, meanwhile = seen(users, action), []

    def watch(module: Any, name: str) -> None:
        real = getattr(module, name)

        def watched(*given: Any, **how: Any) -> Any:
            meanwhile.append(seen(users, action))
            result = real(*given, **how)
            meanwhile.append(seen(users, action))
            return result

        monkeypatch.setattr(module, name, watched)

    table = owned(users, "another")
    for (module, name), _ in BOUNDARIES[action]:
        watch(module, name)
    done = ACTIONS[action](table)

    assert done.whole and (done.commits or done.files_removed), done
    assert len(meanwhile) == 2 * sum(times for _, times in BOUNDARIES[action])
    assert all(one == wanted for one in meanwhile)
    assert seen(users, action) == wanted
    assert verify(users.table()).findings == []


@pytest.mark.slow
@pytest.mark.parametrize(("action", "module", "name", "number", "moment"), boundaries())
def test_who_dies_at_a_boundary_changes_no_result(
    lab: Lab,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    module: Any,
    name: str,
    number: int,
    moment: str,
) -> None:
    users = worn(lab, action)
    wanted, real, calls = seen(users, action), getattr(module, name), []

    def deadly(*given: Any, **how: Any) -> Any:
        calls.append(None)
        if len(calls) < number:
            return real(*given, **how)
        if moment == "after":
            real(*given, **how)
        if moment == "amid":
            table, paths, *rest = given
            real(table, paths[: len(paths) // 2], *rest, **how)
        raise Dead

    table = owned(users, "who dies")
    with monkeypatch.context() as patch, pytest.raises(Dead):
        patch.setattr(module, name, deadly)
        ACTIONS[action](table)

    assert seen(users, action) == wanted
    assert verify(users.table()).findings == []
    # Another process takes the same action, goes on with the table, and cleans up.
    table = owned(users, "another")
    done = ACTIONS[action](table)
    assert done.whole, done
    assert seen(users, action) == wanted
    step(users, table, put(8, 20, name="Hal", day=YOUNG), drop(5, 21))
    assert [key for key, day in users.current("id", "day") if str(day) == YOUNG] == [4, 6, 7, 8]
    views, future = seen(users, action), datetime.now(UTC) + timedelta(days=9)
    remove_orphan_files(table, limits=ActionLimits(future))
    left = find_orphans(table.table, now=future)
    assert isinstance(left, Orphans)
    assert left.files == []
    assert seen(users, action) == views
    assert verify(users.table()).findings == []
