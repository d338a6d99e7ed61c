"""Each commit of a step, struck in each way: done once more, the table is right.

The commit is not made, or made, and the catalog reports an error in both cases; or the process is
killed before it, or after it. Then the node starts again and does the same work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from polynya.lake.iceberg import commit
from polynya.lake.iceberg.commit import Committed, Step
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.read.verify import verify
from polynya.lake.table import dataset
from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import DependencyError, OperationError, PolynyaError
from tests.engine.work.steps import KINDS, Node, rows
from tests.lab.kept import Kept
from tests.lab.lab import Lab, Row
from tests.lab.lying import Lying

Commit = Callable[[IcebergTable, Step], Committed]

STRUCK = ["copy", "apply", "rewrite", "delete files", "expiry of rows"]


class KilledError(KeyboardInterrupt):
    """The process is no more. An interrupt passes every edge where errors are taken."""


class Mode(Enum):
    """What becomes of a commit, and the code of the error that its step ends with."""

    LOST = "not made, an error", "POLYNYA-LAKE-005"
    MADE = "made, an error", None
    KILLED_BEFORE = "killed before", "killed"
    KILLED_AFTER = "killed after", "killed"


@dataclass
class Blow:
    """Strikes the commit with this number; `steps` are those that were to be committed."""

    number: int | None
    mode: Mode
    steps: list[str]

    def commit(self, table: IcebergTable, step: Step) -> Committed:
        """In place of `commit_row_delta`."""
        self.steps.append(step.summary["polynya.step"])
        if len(self.steps) - 1 != self.number:
            return commit.commit_row_delta(table, step)
        if self.mode is Mode.KILLED_BEFORE:
            raise KilledError
        if self.mode is Mode.KILLED_AFTER:
            commit.commit_row_delta(table, step)
            raise KilledError
        return self._lied_about(table, step, made=self.mode is Mode.MADE)

    @staticmethod
    def _lied_about(table: IcebergTable, step: Step, *, made: bool) -> Committed:
        honest = table.java
        table._java = Lying(honest, table.spark._jvm, made=made)
        try:
            return commit.commit_row_delta(table, step)
        finally:
            table._java = honest


@dataclass(frozen=True)
class Life:
    """How the work ended, and the rows after it was done once more, and twice more."""

    heard: str | None
    once_more: list[Row]
    twice_more: list[Row]


def lives(
    lab: Lab,
    name: str,
    patch: pytest.MonkeyPatch,
    around: Callable[[Commit], Commit] = lambda struck: struck,
) -> Callable[[Blow], Life]:
    """What leads one life; `around` is how its commits are made."""
    kind = KINDS[name]
    kept = Kept(kind.prepare(lab))

    def life(blow: Blow) -> Life:
        users = kept.again()
        epoch = DatasetTable.open(lab.spark, users.dataset, "a test").state.epoch
        node = Node(users, "node-1", epoch + 1)
        patch.setattr(dataset, "commit_row_delta", around(blow.commit))
        heard = ending(kind.work, node)
        patch.setattr(dataset, "commit_row_delta", commit.commit_row_delta)
        if heard == "killed":
            # Another process, with another grant.
            node = Node(users, "node-2", epoch + 2)
        kind.work(node)
        first = rows(users)
        kind.work(node)
        assert verify(users.table()).findings == []
        return Life(heard, first, rows(users))

    return life


def ending(work: Callable[[Node], Any], node: Node) -> str | None:
    """The code of the error that the work ends with."""
    try:
        work(node)
    except PolynyaError as error:
        return error.code
    except KilledError:
        return "killed"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("name", STRUCK)
def test_whatever_becomes_of_a_commit_the_work_done_once_more_leaves_what_it_should(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kind, life = KINDS[name], lives(lab, name, monkeypatch)
    whole = Blow(None, Mode.MADE, [])
    assert life(whole) == Life(None, kind.left, kind.left)

    struck = 0
    for number, step in enumerate(whole.steps):
        for mode in Mode:
            says, heard = mode.value
            blow = Blow(number, mode, [])
            assert life(blow) == Life(heard, kind.left, kind.left), f"{step}: {says}"
            assert blow.steps[number] == step
            struck += 1

    assert whole.steps[0] == "takeover"
    assert kind.step in whole.steps
    print(f"{name}: {', '.join(whole.steps)}: {struck} struck")


@pytest.mark.slow
def test_a_commit_that_is_made_again_blindly_is_found(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault of the test above: an error is taken for a commit that was not made."""

    def blind(struck: Commit) -> Commit:
        def twice(table: IcebergTable, step: Step) -> Committed:
            try:
                return struck(table, step)
            except DependencyError:
                return commit.commit_row_delta(table, step)

        return twice

    monkeypatch.setattr(commit, "_is_live", lambda *_: False)
    life = lives(lab, "copy", monkeypatch, blind)

    # The second try is refused, and with it go files that are live.
    with pytest.raises(OperationError) as caught:
        life(Blow(1, Mode.MADE, []))

    assert caught.value.code == "POLYNYA-LAKE-043"
