"""The reports of a real agent tell when its tasks have ended; its workers are scripted."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from polynya.automation.due import TaskEnds
from polynya.automation.state import AutomationStore
from polynya.cluster.messages import JobObserved, RoundEnded, RunEnded
from polynya.cluster.task_ends import TaskProgress
from polynya.formats.batch import FilePart
from polynya.model.errors import OperationError
from polynya.store.object_store import LocalObjectStore
from tests.cluster.fakes import FakeRun, a_batch_of
from tests.cluster.test_agent import Node

TASKS = frozenset({"a", "b"})


class Watched:
    """An agent whose reports are told and found ends in."""

    def __init__(self, folder: Path) -> None:
        (folder / "work").mkdir()
        (folder / "warehouse").mkdir()
        self.node = Node(folder / "work")
        self.node.turns()
        self.progress = TaskProgress(AutomationStore(LocalObjectStore(folder / "warehouse")))

    @property
    def runs(self) -> dict[str, FakeRun]:
        return {run.job.task: run for run in self.node.workers.runs}

    def lists(self, task: str, *paths: str) -> None:
        """The unread files of a dataset, as a step sees them."""
        parts = [FilePart(path, 10) for path in paths]
        self.runs[task].backlog.listed(f"shop.{task}", parts, self.node.clock.monotonic())

    def tells(self, task: str, *events: object) -> None:
        run = self.runs[task]
        for event in events:
            if isinstance(event, OperationError):
                self.node.inbox.put(RunEnded(run.job, run.number, event))
            elif event == "round":
                self.node.inbox.put(RoundEnded(run.job, run.number))
            else:
                self.node.inbox.put(JobObserved(run.job, event))  # type: ignore[arg-type]

    def after(self, seconds: float) -> dict[str, TaskEnds]:
        """What the ends are some seconds later, as the agent reports every ten seconds."""
        found: dict[str, TaskEnds] = {}
        for _ in range(int(seconds / 10)):
            self.node.turns(10.0)
            self.progress.tell(self.node.reports[-1], TASKS)
            found = self.progress.ends(self.node.reports[-1], TASKS)
        return found


def test_a_task_ends_when_its_agent_has_read_what_landed(tmp_path: Path) -> None:
    here = Watched(tmp_path)
    for task in TASKS:
        here.tells(task, "round")
    ends = here.after(240)
    assert (ends["a"].success, ends["a"].failure) == (None, None)
    # It is written twice a minute.
    assert ends["a"].fresh is not None
    assert here.node.clock.now() - ends["a"].fresh <= timedelta(seconds=30)
    assert not ends["a"].is_settling

    # Two files land, one of which is copied; the other is copied a minute later.
    here.lists("a", "1.json", "2.json")
    landed = here.node.clock.now()
    here.after(20)
    here.tells("a", a_batch_of(7))
    here.lists("a", "2.json")
    ends = here.after(60)
    assert (ends["a"].success, ends["a"].fresh) == (None, landed)
    here.tells("a", a_batch_of(3), "round")
    here.lists("a")
    ends = here.after(40)

    assert ends["a"].success is not None
    assert landed < ends["a"].success <= here.node.clock.now()
    assert ends["b"].success is None


def test_a_job_that_fails_ends_its_task_with_a_failure(tmp_path: Path) -> None:
    here = Watched(tmp_path)
    for task in TASKS:
        here.tells(task, "round")
    here.after(240)
    before = here.node.clock.now()
    here.tells("a", OperationError("POLYNYA-LAKE-001", "no such column"))
    ends = here.after(30)

    assert ends["a"].failure is not None
    assert ends["a"].failure > before
    assert ends["b"].failure is None
    assert ends["a"].fresh == before
