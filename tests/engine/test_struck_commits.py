"""Each commit of a step, struck in each way: done once more, the table is right.

The commit is not made, or made, and the catalog reports an error in both cases; or the process is
killed before it, or after it. Then the node starts again and does the same work.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

import pytest

from polynya.lake.iceberg import commit
from polynya.lake.iceberg.commit import CommitStep, Committed
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.read.verify import verify
from polynya.lake.table import dataset
from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import DependencyError, OperationError, PolynyaError
from tests.engine.steps import KINDS, Node, rows
from tests.lab.kept import Kept
from tests.lab.lab import Feed, Lab, Row, next_schema
from tests.lab.lying import Lying, LyingAtLast

Commit = Callable[[IcebergTable, CommitStep], Committed]
T = TypeVar("T")

#: A rollback takes rows back, and neither a new table nor columns.
MADE_ANEW = {"first load", "recreation"}
#: A change of columns is a commit of its own, and has no marker to look for.
COLUMNS = "columns"
CHANGE = IcebergTable.commit_change


class KilledError(KeyboardInterrupt):
    """The process is no more. An interrupt passes every edge where errors are taken."""


class Mode(Enum):
    """What becomes of a commit."""

    LOST = "not made, an error"
    MADE = "made, an error"
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"

    def heard(self, step: str) -> str | None:
        """The code of the error that the work has to end with."""
        if self in {Mode.KILLED_BEFORE, Mode.KILLED_AFTER}:
            return "killed"
        if step == COLUMNS:
            return "POLYNYA-LAKE-004"
        return "POLYNYA-LAKE-005" if self is Mode.LOST else None


@dataclass
class Blow:
    """Strikes the commit with this number; `steps` are those that were to be committed."""

    number: int | None
    mode: Mode
    steps: list[str]

    def commit(self, table: IcebergTable, step: CommitStep) -> Committed:
        """In place of `commit_row_delta`."""

        def made(step: CommitStep = step) -> Committed:
            return commit.commit_row_delta(table, step)

        def lied_about(made_it: bool) -> Committed:
            jvm, honest = table.spark._jvm, table.java
            if step.within is not None:
                return made(replace(step, within=LyingAtLast(step.within, jvm, made=made_it)))
            table._java = Lying(honest, jvm, made=made_it)
            try:
                return made()
            finally:
                table._java = honest

        return self._struck(step.summary["polynya.step"], made, lied_about)

    def change(self, table: IcebergTable, update: Any) -> None:
        """In place of `IcebergTable.commit_change`."""
        jvm = table.spark._jvm
        self._struck(
            COLUMNS,
            lambda: CHANGE(table, update),
            lambda made_it: CHANGE(table, Lying(update, jvm, made=made_it)),
        )

    def _struck(self, step: str, made: Callable[[], T], lied_about: Callable[[bool], T]) -> T:
        self.steps.append(step)
        if len(self.steps) - 1 != self.number:
            return made()
        if self.mode is Mode.KILLED_BEFORE:
            raise KilledError
        if self.mode is Mode.KILLED_AFTER:
            made()
            raise KilledError
        return lied_about(self.mode is Mode.MADE)


@dataclass(frozen=True)
class Life:
    """How the work ended, the rows after it was done once more and after what came then.

    And what readers see, and what `polynya verify` finds.
    """

    heard: str | None
    once_more: list[Row]
    then: list[Row]
    current: list[Row]
    findings: Sequence[Any]


def lives(
    lab: Lab,
    name: str,
    patch: pytest.MonkeyPatch,
    around: Callable[[Commit], Commit] = lambda struck: struck,
    told: Callable[[Node], list[str]] = lambda node: node.done,
) -> Callable[[Blow], Life]:
    """What leads one life.

    `around` is how its commits are made, `told` what the next node hears of what is done.
    """
    kind = KINDS[name]
    kept = None if name in MADE_ANEW else Kept(kind.prepare(lab))

    def begun() -> Feed:
        if kept is not None:
            return kept.again()
        mine = copy.copy(lab)
        mine.schema = next_schema()
        mine.landing = lab.landing
        return kind.prepare(mine)

    def life(blow: Blow) -> Life:
        users = begun()
        epoch = DatasetTable.open(lab.spark, users.dataset, "a test").state.epoch
        node = Node(users, "node-1", epoch + 1)
        with patch.context() as struck:
            struck.setattr(dataset, "commit_row_delta", around(blow.commit))
            struck.setattr(IcebergTable, "commit_change", lambda *change: blow.change(*change))
            heard = ending(kind.work, node)
        if heard == "killed":
            # Another process, with another grant.
            node = Node(users, "node-2", epoch + 2, done=told(node))
        kind.work(node)
        once_more = rows(users)
        (kind.then or kind.work)(node)
        current = users.current(*users.columns())
        return Life(heard, once_more, rows(users), current, verify(users.table()).findings)

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
@pytest.mark.parametrize("name", KINDS)
def test_whatever_becomes_of_a_commit_the_work_done_once_more_leaves_what_it_should(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kind, life = KINDS[name], lives(lab, name, monkeypatch)
    unstruck = Blow(None, Mode.MADE, [])
    whole = life(unstruck)
    assert (whole.heard, whole.once_more, whole.then) == (None, kind.left, kind.left)
    assert whole.findings == []

    struck = 0
    for number, step in enumerate(unstruck.steps):
        for mode in Mode:
            blow = Blow(number, mode, [])
            assert life(blow) == replace(whole, heard=mode.heard(step)), f"{step}: {mode.value}"
            assert blow.steps[number] == step
            struck += 1

    assert unstruck.steps[0] == "takeover"
    assert kind.step in unstruck.steps
    print(f"{name}: {', '.join(unstruck.steps)}: {struck} struck")


@pytest.mark.slow
def test_a_commit_that_is_made_again_blindly_is_found(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault: an error is taken for a commit that was not made."""

    def blind(struck: Commit) -> Commit:
        def twice(table: IcebergTable, step: CommitStep) -> Committed:
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


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step"), [("first load", "copy"), ("reload", "apply")])
def test_a_position_that_is_committed_after_the_rows_is_found(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, name: str, step: str
) -> None:
    """A planted fault: a process that is killed between the two does its rows again."""
    at_once, life = DatasetTable.commit, lives(lab, name, monkeypatch)

    def in_two(table: DatasetTable, *, copy: Any = None, add: Any = (), **how: Any) -> int:
        if not add or copy is None:
            return at_once(table, copy=copy, add=add, **how)
        at_once(table, copy=table.state.copy, add=add, **how)
        return at_once(table, copy=copy, summary={"polynya.step": "position"})

    monkeypatch.setattr(DatasetTable, "commit", in_two)
    unstruck = Blow(None, Mode.MADE, [])
    assert life(unstruck).then == KINDS[name].left

    struck = life(Blow(unstruck.steps.index(step), Mode.KILLED_AFTER, []))

    assert struck.heard == "killed"
    assert struck.then != KINDS[name].left


@pytest.mark.slow
def test_a_recreation_that_is_called_done_too_early_is_found(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault: it is said before the commit, and the process is killed between the two."""
    life = lives(lab, "recreation", monkeypatch, told=lambda _: ["recreate"])

    struck = life(Blow(1, Mode.KILLED_BEFORE, []))

    assert struck.heard == "killed"
    assert struck.then != KINDS["recreation"].left
