"""What has to hold of what people ask of units, read without the code under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from polynya.cluster.unit import JobKey
from tests.cluster.simulation.judge.records import Fields, decoded
from tests.cluster.simulation.parts.store import Write
from tests.cluster.simulation.parts.tables import Table

PERSON = "a person"


class RequestJudge:
    """Checks wishes and outcomes; `fail` gets what is wrong.

    A wish is known by its nonce. `told` says when what became of it was written first.
    """

    def __init__(
        self,
        now: Callable[[], float],
        fail: Callable[[str], None],
        tables: Mapping[JobKey, Table],
        counts: Counter[str],
    ) -> None:
        self._now, self._fail, self._tables, self._counts = now, fail, tables, counts
        self.told: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self._open: dict[str, str] = {}

    @property
    def open(self) -> list[str]:
        """The units of which something is asked."""
        return sorted(self._open)

    def see(self, change: Write) -> None:
        """Check a change of an agent, or of a person who asks as people do."""
        kind, _, unit = change.path.partition("/")[2].partition("/")
        before, after = decoded(change.before), decoded(change.after)
        if kind == "wishes":
            self._request(change.process, unit, before, after)
        elif kind == "outcomes":
            self._outcome(unit, before, after)

    def _request(
        self, process: str, unit: str, before: Fields | None, after: Fields | None
    ) -> None:
        if after is not None:
            if before is not None or not process.startswith(PERSON):
                self._fail(f"{process} wrote over what is asked of {unit}")
            self._asked[after["nonce"]] = self._now()
            self._open[unit] = after["nonce"]
            self._counts["wishes"] += 1
        elif before is not None:
            del self._open[unit]
            if process.startswith(PERSON):
                self._counts["wishes withdrawn"] += 1
            elif before["nonce"] not in self.told:
                self._fail(f"{process} deleted what is asked of {unit} and never said what came")

    def _outcome(self, unit: str, before: Fields | None, after: Fields | None) -> None:
        if after is None:
            self._fail(f"what became of a wish for {unit} was deleted")
            return
        request, old = after["wish"], before or {"wish": None, "epoch": 0}
        if self._asked.get(old["wish"], 0.0) > self._asked[request]:
            self._fail(f"what became of a wish for {unit} was replaced by that of an older one")
        if after["epoch"] < old["epoch"]:
            self._fail(f"an owner of {unit} before spoke after the one of epoch {old['epoch']}")
        self._counts["wishes carried out"] += after["done"] and request not in self.told
        self._counts["wishes that could not be"] += not after["done"] and request not in self.told
        self.told.setdefault(request, self._now())
        task, _, name = unit.partition("/")
        if after["done"] and not any(
            commit.did == request for commit in self._tables[JobKey(task, name)].commits
        ):
            self._fail(f"a wish for {unit} is said to be done, and nobody did it")

    def begins(self, process: str, unit: JobKey, request: str, since: float) -> None:
        """Somebody who has owned a unit `since` then begins what is asked of it."""
        self._counts["wishes begun"] += 1
        if self.told.get(request, float("inf")) < since:
            self._fail(f"{process} does again with {unit} what was done before it had the unit")
