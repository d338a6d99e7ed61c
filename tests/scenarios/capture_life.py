"""One scenario of a capture: two tables share its files, and live in the engine and in the fold.

The histories are those of a small database: transactions, a first load, truncates, deletes with
their tombstones, changes of key, large values that are not sent again. Here they arrive late, more
than once, and while one of the tables is suspended.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from polynya.engine.commands.rebuild import rebuild
from polynya.lake.read.query import run_query
from polynya.lake.read.verify import verify
from polynya.lake.table.state import Suspension
from polynya.lake.table.suspension import resume, suspend
from polynya.model.errors import SuspendedError
from tests.lab.lab import STARTED, Lab
from tests.oracle.emit import debezium_lines
from tests.oracle.fold import UPSERT, Event
from tests.oracle.histories import Choices, Shape, captured_history
from tests.oracle.packs.datasets import Dataset
from tests.scenarios.kills import Kill, in_spite_of

TABLES = ("users", "orders")
WAIT = Suspension("asked", "a decision", "here", STARTED.isoformat())
SHAPE = Shape(columns=("name", "note"), truncates=4, loads=50, key_changes=50, lost=0)


class CaptureLife:
    """See the module. Every step is told in `told`, so that a failure can be read."""

    def __init__(self, lab: Lab, choices: Choices) -> None:
        self.lab, self.choices = lab, choices
        self.told: list[str] = []
        history, soft = choices.integer(0, 3) > 0, choices.integer(0, 3) == 0
        self.keeps = choices.integer(0, 1) == 1
        self.capture = lab.capture(
            history=history,
            delete_mode="soft" if soft else "hard",
            changes_retention="keep" if self.keeps else None,
        )
        #: What the source will still say, what is on its way, what has landed, what was copied.
        self.coming = {name: captured_history(choices, SHAPE, 40) for name in TABLES}
        self.late: dict[str, list[Event]] = {name: [] for name in TABLES}
        self.landed: dict[str, list[Event]] = {name: [] for name in TABLES}
        self.copied: dict[str, list[Event]] = {name: [] for name in TABLES}
        self.suspended: str | None = None
        self.kill: Kill | None = None
        self.tables = [
            Dataset(
                lab.schema, name, SHAPE.keys, SHAPE.columns, [self.copied[name]],
                format="debezium", history=history, soft=soft,
            )
            for name in TABLES
        ]  # fmt: skip

    def live(self, steps: int) -> list[str]:
        """Take random steps; what differs from the fold at times, and what is unsound."""
        self._changes()
        for _ in range(steps):
            self._step()
            if self.choices.integer(0, 2) == 0:
                found = self.mismatches()
                if found:
                    return found
        self._resume()
        findings = [f for name in TABLES for f in verify(self.capture[name].table()).findings]
        return [*self.mismatches(), *(f"verify: {finding}\n{self.told}" for finding in findings)]

    def _step(self) -> None:
        steps = [self._changes, self._changes, self._suspend, self._resume]
        step = self.choices.pick([*steps, self._rebuild] if self.keeps else steps)
        if self.choices.integer(0, 3) == 0:
            self.kill = Kill(self.choices.integer(1, 4), after=bool(self.choices.integer(0, 1)))
        self.lab.clock.advance(timedelta(seconds=1))
        step()
        self.kill = None

    def _changes(self) -> None:
        """A file of both tables lands: news, what is late, and what was delivered before."""
        lines: list[Any] = []
        for name in TABLES:
            events = self._delivered(name)
            lines += debezium_lines(events, self.lab.schema, name, SHAPE.keys)
            self.landed[name] += events
            said = ", ".join(f"{e.op} {e.key} from {e.old_key} at {e.sequence}" for e in events)
            self._say(f"{name}: {said}")
        self.capture.land(*lines)
        self._run()

    def _delivered(self, name: str) -> list[Event]:
        coming, late, events = self.coming[name], self.late[name], []
        # A table is known by its first row: it is among what lands first.
        rows = 0 if self.landed[name] else 1 + [e.op for e in coming].index(UPSERT)
        for _ in range(max(rows, self.choices.integer(1, 8))):
            if not coming:
                break
            kept_back = rows == 0 and self.choices.integer(0, 4) == 0
            (late if kept_back else events).append(coming.pop(0))
        if late and self.choices.integer(0, 1):
            events.append(late.pop(self.choices.integer(0, len(late) - 1)))
        if self.landed[name] and self.choices.integer(0, 2) == 0:
            events.append(self.choices.pick(self.landed[name]))
        return events

    def _suspend(self) -> None:
        if self.suspended is None:
            self.suspended = self.choices.pick(TABLES)
            self._say(f"suspend {self.suspended}")
            suspend(self.capture[self.suspended].table("somebody"), WAIT)
        self._changes()

    def _resume(self) -> None:
        if self.suspended is not None:
            self._say(f"resume {self.suspended}")
            resume(self.capture[self.suspended].table("somebody"), {})
            self.suspended = None
        self._run()

    def _rebuild(self) -> None:
        name = self.choices.pick(TABLES)
        look = self.capture[name]
        if look.table().state.apply.retaining is not None:
            self._say(f"rebuild {name}")
            self._do(lambda: rebuild(self.lab.context(), look.dataset))

    def _run(self) -> None:
        apply = self.choices.pick(("never", "always"))
        self._say(f"run, apply {apply}")

        def once() -> None:
            try:
                self.capture.run(apply)
            except SuspendedError:
                assert self.suspended is not None

        self._do(once)
        for name in TABLES:
            if name != self.suspended:
                self.copied[name][:] = self.landed[name]

    def _do(self, step: Callable[[], object]) -> None:
        if self.kill is not None:
            self._say(f"  killed {self.kill}")
        in_spite_of(self.kill, step)

    def mismatches(self) -> list[str]:
        """What the views show else than the fold of what was copied."""
        found = []
        for table in self.tables:
            rows = [run_query(self.lab.spark, statement) for statement in table.statements()]
            found += ["\n".join([*self.told, text]) for text in table.mismatches(rows)]
        return found

    def _say(self, text: str) -> None:
        self.told.append(f"{len(self.told)}: {text}")
